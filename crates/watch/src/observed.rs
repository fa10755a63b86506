//! Everything that the processes of a run did, as one value.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::log::Identity;
use crate::path_text::PathText;

/// Everything that the watched processes did.
///
/// Paths stand as the programs spelled them. A relative one is relative to the working directory of the
/// first process; those of processes that ran elsewhere are made absolute. A file that was missing
/// and then made is in both sets, as is a directory that a program opened like a file in `read`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// The executables of the programs started, in the order they began to log.
    pub processes: Vec<PathText>,
    /// The paths by which programs were started, and the executables they came to: a script's is its interpreter.
    pub called: BTreeMap<PathText, PathBuf>,
    /// Shared libraries they had mapped at their start or end.
    pub libraries: BTreeMap<PathText, Identity>,
    /// Files opened for reading, programs found among them, with each file's identity at that moment.
    pub read: BTreeMap<PathText, Identity>,
    /// Paths that were looked for and did not exist.
    pub missing: BTreeSet<PathText>,
    /// Names that did not exist, not even as a link.
    pub nothing: BTreeSet<PathText>,
    /// Files opened for writing, or put in place, with each file's identity when it was opened.
    pub written: BTreeMap<PathText, Identity>,
    /// Files that a program was about to create when it was killed. Whether it did is not known.
    pub unfinished: BTreeSet<PathText>,
    /// For each name written or removed, the executable that did it first.
    pub writers: BTreeMap<PathText, PathBuf>,
    /// Names removed, or renamed to others.
    pub removed: BTreeSet<PathText>,
    /// Directories opened for listing.
    pub listed: BTreeSet<PathText>,
    /// Paths that were looked at and existed, without being opened.
    pub found: BTreeSet<PathText>,
    /// Those of [`Observed::found`] that only programs looked at for which `known` did not hold.
    pub found_by_strangers: BTreeSet<PathText>,
    /// Regular files that programs for which `known` did not hold looked at, with what they were told. Size and time of
    /// the last change are there; a caller of `statx` learns no more.
    pub looked: BTreeMap<PathText, Identity>,
    /// Links that were read, with their texts.
    pub links: BTreeMap<PathText, PathBuf>,
    /// Paths that were resolved, with what they are without links.
    pub resolved: BTreeMap<PathText, PathBuf>,
    /// Environment variables asked for by name, for each executable that did.
    pub variables: BTreeMap<PathBuf, BTreeSet<OsString>>,
    /// Executables that have the list of all variables, and may look through it.
    pub have_environ: BTreeSet<PathBuf>,
    /// Executables that asked for the working directory.
    pub asked_directory: BTreeSet<PathBuf>,
    /// Paths that programs for which `known` did not hold may execute, as `access` told them.
    pub executable: BTreeSet<PathText>,
    /// Limits of the process that such programs asked for, by number; [`Observed::UMASK`] is its `umask`.
    pub limits: BTreeSet<u8>,
    /// A known program asked for a moment as a date and a time. gcc and clang do so where they expand `__DATE__`,
    /// `__TIME__` or `__TIMESTAMP__`, and nowhere else.
    pub asked_time: bool,
    /// A program that read standard input, where that was empty because it was not the user's.
    pub read_input: Option<PathBuf>,
    /// A program for one of whose writes there was no room.
    pub no_room: Option<PathBuf>,
    /// Files that programs for which `known` did not hold have read: their scripts and modules.
    pub texts: BTreeSet<PathText>,
    /// Why these observations may be incomplete.
    pub untracked: Option<String>,
}

impl Observed {
    /// In [`Observed::limits`], no limit.
    pub const UMASK: u8 = 255;
}
