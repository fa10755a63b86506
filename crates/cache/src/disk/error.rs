//! The store's errors. Each names its file; the caller turns each into a miss.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::RecordError;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path leads to something else.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Other users could write to it.
    #[error("{} {why}, so others could put results there (`shared = true` allows it)", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// The problem with it.
        why: &'static str,
    },
    /// The path cannot be examined.
    #[error("failed to examine {}", path.display())]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Why the store could not do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("failed to {action} {}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store was opened for reading only.
    #[error("the cache is read-only")]
    ReadOnly,
    /// A file changed while it was being stored.
    #[error("{} changed while it was being stored", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A result does not fit a record.
    #[error("failed to encode the record {}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// The reason.
        source: RecordError,
    },
    /// A kind of note whose name is not plain.
    #[error("{0:?} is not a kind of note: only a-z, 0-9, - and _")]
    Kind(String),
    /// Another process holds a lock for too long.
    #[error("{} is locked by another process", path.display())]
    Busy {
        /// The locked file.
        path: PathBuf,
    },
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> StoreError {
        StoreError::Io {
            action,
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Why a blob's bytes could not be read.
#[derive(Debug)]
pub(super) enum BlobFault {
    /// Its content does not match its name.
    Bad,
    Reading(io::Error),
    Writing(io::Error),
}
