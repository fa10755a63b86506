//! Warnings about the shared budget, for the caller to show; none of them stops a build.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A reason why the budget is not, or not wholly, shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// No runtime folder can be used.
    #[error("no shared budget, tasks of other processes are not counted: {}: {why}", folder.display())]
    NoFolder {
        /// The folder that was tried last.
        folder: PathBuf,
        /// The problem with it.
        why: String,
    },
    /// The board cannot be read or written any more.
    #[error("the shared budget failed, tasks of other processes are not counted: {0}")]
    BoardFailed(io::Error),
    /// All seats are taken by living processes.
    #[error("the shared budget is full, one task is not counted")]
    Full,
}

/// Warnings that were not taken yet, each kind once.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<WarningLog>);

#[derive(Debug, Default)]
struct WarningLog {
    seen: Vec<std::mem::Discriminant<Warning>>,
    new: Vec<Warning>,
}

impl Warnings {
    pub fn add(&self, warning: Warning) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = std::mem::discriminant(&warning);
        if !kept.seen.contains(&kind) {
            kept.seen.push(kind);
            kept.new.push(warning);
        }
    }

    pub fn take(&self) -> Vec<Warning> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).new)
    }
}
