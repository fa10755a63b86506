//! The destination of warnings.

use std::sync::Mutex;

use super::mutex::lock;

/// The destination of warnings.
pub enum WarningSink {
    /// Printed at once, one line each.
    Print(fn(&str)),
    /// Kept until somebody asks.
    Keep(Mutex<Vec<String>>),
}

impl WarningSink {
    /// Passes on one line.
    pub(super) fn emit(&self, text: &str) {
        match self {
            Self::Print(print) => print(text),
            Self::Keep(kept) => lock(kept).push(text.to_owned()),
        }
    }

    /// The lines that nobody has asked for yet.
    pub(super) fn take(&self) -> Vec<String> {
        match self {
            Self::Print(_) => Vec::new(),
            Self::Keep(kept) => std::mem::take(&mut *lock(kept)),
        }
    }
}
