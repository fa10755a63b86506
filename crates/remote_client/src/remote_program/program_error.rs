//! The error of `warpcc-remote`, if it does not reply.

use std::path::{Path, PathBuf};

/// The reason why `warpcc-remote` does not reply, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {why}", file.display())]
pub struct ProgramError {
    file: PathBuf,
    why: String,
}

impl ProgramError {
    pub(super) fn new(file: &Path, why: &str) -> Self {
        Self {
            file: file.to_owned(),
            why: why.to_owned(),
        }
    }
}
