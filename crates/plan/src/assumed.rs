//! Assumptions about files that do not exist yet: a plan with overlaps starts steps before their inputs are written.
//! Also the files that such a plan writes in advance.

use crate::step::{FileId, Step};

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
    /// What the step that writes the file has written when it announces it, some time before its end. If the step ends without an
    /// announcement, nothing was assumed.
    Announced,
}

/// An assumption that a later result must confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed {
    /// The file whose content decides, once its step has written it.
    pub file: FileId,
    /// The content that it must have.
    pub expected: Expected,
    /// The file that steps read in place of the real one. If the assumption was wrong, these steps are repeated; if others
    /// have worked on their results by then, the plan runs again without its overlaps.
    pub stand_in: FileId,
}

impl Assumed {
    /// Whether a step uses the assumption.
    pub fn is_used_by(&self, step: &Step) -> bool {
        step.reads.contains(&self.stand_in)
    }

    /// Whether this file is the real one or its replacement.
    pub fn is_about(&self, id: FileId) -> bool {
        self.file == id || self.stand_in == id
    }
}
