//! Why nothing comes from `warpcc-remote`.

use std::path::{Path, PathBuf};

/// Why `warpcc-remote` does not reply, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {why}", file.display())]
pub struct Gone {
    file: PathBuf,
    why: String,
}

impl Gone {
    pub(super) fn new(file: &Path, why: &str) -> Self {
        Self {
            file: file.to_owned(),
            why: why.to_owned(),
        }
    }
}
