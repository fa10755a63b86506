//! Everything that the processes of a run did, as one value.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::log::Identity;
use crate::path_text::PathText;

/// Everything that the watched processes did.
///
/// Paths are spelled as the programs spelled them. A relative path is relative to the working directory of the first
/// process; those of processes that ran elsewhere are made absolute. A file that was missing and then created is in both
/// sets. A directory that a program opened like a file is in `read`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// The executables of the programs that started, in the order in which they began to log.
    pub processes: Vec<PathText>,
    /// The paths by which programs were started, with the executable of each: for a script it is the interpreter.
    pub called: BTreeMap<PathText, PathBuf>,
    /// Shared libraries that were mapped at the start or end of a process.
    pub libraries: BTreeMap<PathText, Identity>,
    /// Files that were opened for reading, and programs that were found, each with its identity at that moment.
    pub read: BTreeMap<PathText, Identity>,
    /// Paths that were looked for and did not exist.
    pub missing: BTreeSet<PathText>,
    /// Names that did not exist, not even as a link.
    pub nothing: BTreeSet<PathText>,
    /// Files opened for writing, or put in place, with each file's identity when it was opened.
    pub written: BTreeMap<PathText, Identity>,
    /// A file that a program would have changed next. It ended itself instead: see [`hold`](crate::hold).
    pub held: Option<PathText>,
    /// A program that was killed, or goes on in the background.
    pub unfinished: Option<PathBuf>,
    /// For each name written or removed, the executable that did it first.
    pub writers: BTreeMap<PathText, PathBuf>,
    /// Names that a process wrote while its working directory was another one than the first process's.
    pub written_elsewhere: BTreeSet<PathText>,
    /// Names removed, or renamed to others.
    pub removed: BTreeSet<PathText>,
    /// Symbolic links that were made, with the executable that made each.
    pub links_made: BTreeMap<PathText, PathBuf>,
    /// Directories opened for listing.
    pub listed: BTreeSet<PathText>,
    /// Paths that were looked at and existed, without being opened.
    pub found: BTreeSet<PathText>,
    /// The paths in [`Observed::found`] at which only programs looked for which `known` did not hold.
    pub found_by_strangers: BTreeSet<PathText>,
    /// Regular files at which programs looked for which `known` did not hold, with the result. It contains size and time of
    /// the last change; a caller of `statx` gets no more.
    pub looked: BTreeMap<PathText, Identity>,
    /// The same for programs for which `known` held.
    pub looked_by_known: BTreeMap<PathText, Identity>,
    /// Links that were read, with their texts.
    pub links: BTreeMap<PathText, PathBuf>,
    /// Files of procfs and sysfs that were opened for reading, with the text of each at that moment.
    pub kernel_texts: BTreeMap<PathText, PathBuf>,
    /// Paths that were resolved, with the result.
    pub resolved: BTreeMap<PathText, PathBuf>,
    /// Environment variables that were asked for by name, for each executable.
    pub variables: BTreeMap<PathBuf, BTreeSet<OsString>>,
    /// Executables that import the list of all variables, and may look through it.
    pub have_environ: BTreeSet<PathBuf>,
    /// Libraries that import this list, and that the user preloaded or the program loaded after its start, each behind the
    /// executable.
    pub libraries_have_environ: BTreeSet<(PathBuf, PathText)>,
    /// Whether an argument of a program has clang's `-working-directory` in it.
    pub names_folder: bool,
    /// Executables that asked for the working directory.
    pub asked_directory: BTreeSet<PathBuf>,
    /// Paths that may be executed, by the result of `access` in programs for which `known` did not hold.
    pub executable: BTreeSet<PathText>,
    /// Paths that were looked at or opened in vain, because this user may not, or the file system is read-only; and those that
    /// may be read or written, by the result of `access` in programs for which `known` did not hold.
    /// Each has the errors of being there, being read, written and executed, at that moment.
    pub permissions: BTreeMap<PathText, [u8; 4]>,
    /// Limits of the process that such programs asked for, by number, and the other facts about it, which have numbers here.
    /// Each with the executables that asked, see [`Observed::FORKED`].
    pub limits: BTreeMap<u8, BTreeSet<PathBuf>>,
    /// Executables for which `known` did not hold, and that made a date of the present moment, or asked what is free.
    pub asked_passing: BTreeSet<PathBuf>,
    /// Whether a known program asked for a date and time in parts. gcc and clang do so only when they expand `__DATE__`,
    /// `__TIME__` or `__TIMESTAMP__`.
    pub asked_time: bool,
    /// For each executable, the first file that it closed without reading from it. gcc's compiler proper does so only to
    /// compare the file's time with another's; other programs read in ways that are not seen.
    pub closed_unread: BTreeMap<PathBuf, PathBuf>,
    /// A program that read standard input, which was empty because it was not the user's.
    pub read_input: Option<PathBuf>,
    /// A program that had no room for one of its writes.
    pub no_room: Option<PathBuf>,
    /// Files that were read by programs for which `known` did not hold: their scripts and modules. Each with the executables
    /// that read it.
    pub texts: BTreeMap<PathText, BTreeSet<PathBuf>>,
    /// Why these observations may be incomplete.
    pub untracked: Option<String>,
}

impl Observed {
    /// The name of an executable that is not in the log: that of a child which runs its parent's program.
    pub const FORKED: &str = "a forked process";

    // The numbers in `Observed::limits` of what is no limit.

    /// The `umask`.
    pub const UMASK: u8 = 255;
    /// The user and the groups.
    pub const USER: u8 = 200;
    /// The machine's name and kernel.
    pub const MACHINE: u8 = 201;
    /// The processors on which the process may run.
    pub const PROCESSORS: u8 = 202;
    /// The priority.
    pub const PRIORITY: u8 = 203;
    /// Whether standard output and standard error are terminals.
    pub const TERMINALS: u8 = 204;
    /// What standard input is.
    pub const INPUT: u8 = 205;
    /// The same, asked about by a name, or by another descriptor than 0: no program does so only because it starts.
    pub const NAMED_INPUT: u8 = 207;
    /// What soon has another answer, for [`Observed::asked_passing`].
    pub(crate) const PASSING: u8 = 206;
}
