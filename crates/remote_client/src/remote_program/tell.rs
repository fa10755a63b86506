//! Who tells the user what went wrong.

use std::sync::Mutex;

use super::mutex::held;

/// Who tells the user what went wrong.
pub enum Tell {
    /// This, in one line each.
    AtOnce(fn(&str)),
    /// Who asks for it.
    WhenAsked(Mutex<Vec<String>>),
}

impl Tell {
    /// One line.
    pub(super) fn line(&self, text: &str) {
        match self {
            Self::AtOnce(tell) => tell(text),
            Self::WhenAsked(kept) => held(kept).push(text.to_owned()),
        }
    }

    /// The lines that nobody asked for yet.
    pub(super) fn take(&self) -> Vec<String> {
        match self {
            Self::AtOnce(_) => Vec::new(),
            Self::WhenAsked(kept) => std::mem::take(&mut *held(kept)),
        }
    }
}
