//! The assumptions of a plan with overlaps about files that are not there yet, and the files that it writes ahead.

use crate::step::FileId;

/// The content of a file that has to exist before anything starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The file.
    pub file: FileId,
    /// Its text.
    pub text: String,
}

/// The assumed content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This text.
    Text(String),
    /// The same as another file, which this step makes early; when the file itself is there first
    /// the step is pointless.
    SameAs(FileId, usize),
}

/// An assumption that a later result has to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed {
    /// The file that decides, when its step has written it.
    pub file: FileId,
    /// The content that it must have.
    pub expected: Expected,
    /// The one step that used it, with the file that stood in; only this step is then repeated. `None`: the plan is run
    /// again without its overlaps.
    pub redo: Option<(usize, FileId)>,
}

impl Assumed {
    /// Whether the file decides, stands in, or is what another is compared with.
    pub fn is_about(&self, id: FileId) -> bool {
        let is_compared = matches!(self.expected, Expected::SameAs(other, _) if other == id);
        self.file == id || is_compared || self.redo.is_some_and(|(_, stand_in)| stand_in == id)
    }
}
