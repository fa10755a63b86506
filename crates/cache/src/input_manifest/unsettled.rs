//! Why a run has no input manifest, so that its result is not stored.

use std::io;
use std::path::PathBuf;

/// Why a run has no manifest: the files changed while it ran.
#[derive(Debug, thiserror::Error)]
pub enum Unsettled {
    /// A file changed after the run began, or so shortly before that the file's times cannot tell.
    #[error("{} changed while it was in use", path.display())]
    ChangedDuring {
        /// The file.
        path: PathBuf,
    },
    /// A file that was read is gone.
    #[error("{} is gone", path.display())]
    Vanished {
        /// The file.
        path: PathBuf,
    },
    /// A name that was not found exists now.
    #[error("{} appeared meanwhile", path.display())]
    Appeared {
        /// The file.
        path: PathBuf,
    },
    /// The path that was read is a directory, a pipe or a device, so its content cannot be hashed.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file that was read cannot be read now.
    #[error("failed to read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has `#pragma GCC dependency`: a warning depends on two files' times, whatever they contain.
    #[error("#pragma GCC dependency in {}", path.display())]
    ComparesTimes {
        /// The file.
        path: PathBuf,
    },
    /// The same in an option.
    #[error("#pragma GCC dependency in an option")]
    OptionComparesTimes,
    /// There are more paths than a record holds.
    #[error("too many paths to remember")]
    TooMuch,
}
