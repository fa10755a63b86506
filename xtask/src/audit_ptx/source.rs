//! What is edited and compiled: a source, its options, and what was changed.

use crate::soak::random::Random;

/// A source with its options, which is then edited.
pub struct Base {
    pub name: String,
    pub source: Box<dyn TestSource>,
    pub options: Vec<String>,
}

/// What can be edited.
pub trait TestSource {
    fn text(&self) -> String;
    /// Edits it; says how.
    fn edit(&mut self, random: &mut Random) -> Edit;
}

/// What was changed.
#[derive(Clone, Copy)]
pub struct Edit {
    pub name: &'static str,
}

impl Edit {
    /// The text as it was made.
    pub const NONE: Self = Self { name: "none" };
}
