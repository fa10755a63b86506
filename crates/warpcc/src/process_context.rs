//! The surroundings of this process: its directory, its environment, and its own files.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

/// The surroundings in which this process was started.
pub struct ProcessContext {
    /// This program's file, and those of the warpccs that started it.
    pub ourselves: Vec<PathBuf>,
    /// Whether `/proc` says where this program's file is.
    pub has_proc: bool,
    /// The working directory; empty where it has been removed.
    pub directory: PathBuf,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// When this process began.
    pub started: SystemTime,
}
