//! The options of a run: where, with what, and how.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use warpcc_cache::{DiskStore, Upstream};
use warpcc_path_map::{PathMap, WorkDir};
use warpcc_plan::TaskGraph;
use warpcc_plan::depfile::Rule;

use crate::admission::Admission;
use crate::executor::Executor;
use crate::failure::OnFailure;
use crate::process::Children;
use crate::run_environment::RunEnvironment;
use crate::states::TaskStates;
use crate::terminal::Terminal;

/// In which order tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Each task runs as soon as its inputs are there.
    Parallel,
    /// One task at a time, in nvcc's order.
    Sequential,
}

/// A function that gets the states of all tasks each time that one has changed.
pub type Listener<'a> = &'a (dyn Fn(&TaskGraph, &TaskStates) + Sync);

/// Everything a run needs to know.
pub struct RunOptions<'a> {
    /// The user's working directory, in which every command runs.
    pub directory: &'a Path,
    /// The whole environment of the commands.
    pub environment: &'a [(OsString, OsString)],
    /// `PATH` as the user has it. nvcc puts its own folders in front.
    pub path: Option<&'a OsStr>,
    /// Folders whose names enter neither keys nor results; usually none.
    pub path_map: &'a PathMap,
    /// A private folder for logs and results, absolute.
    pub scratch: &'a Path,
    /// The cache, if there is one to use.
    pub store: Option<&'a DiskStore>,
    /// Whether results may be taken from it.
    pub reads_cache: bool,
    /// Shared caches: the engine asks them after a miss, and sends them new results.
    pub upstream: Option<&'a dyn Upstream>,
    /// Whether results may be put into it.
    pub writes_cache: bool,
    /// The watch library, if it can be used.
    pub watch: Option<&'a Path>,
    /// At most this many tasks at a time.
    pub jobs: usize,
    /// Whether a text on another line counts as another text, even if no result contains its line.
    pub lines_count: bool,
    /// Order of the tasks.
    pub order: Order,
    /// Which tasks a failure ends.
    pub on_failure: OnFailure,
    /// The dependency rule that the dependency filter writes.
    pub rule: Option<Rule>,
    /// The machine's budget, if tasks must wait for a slot.
    pub admission: Option<&'a Admission<'a>>,
    /// Other machines that may run tasks, if there are any.
    pub executor: Option<&'a dyn Executor>,
    /// The terminal that diagnostics go to, if they go to one.
    pub terminal: Option<&'a Terminal>,
    /// Receives the run's events, if set.
    pub listener: Option<Listener<'a>>,
    /// Removes an old file of the user's, as nvcc does right before a command.
    pub remove: &'a (dyn Fn(&str) + Sync),
    /// The children, so that a signal can end them.
    pub children: &'a Children,
}

impl RunOptions<'_> {
    /// The environment in which conditions are checked.
    pub fn run_environment(&self) -> RunEnvironment<'_> {
        RunEnvironment {
            environment: self.environment,
            directory: self.directory,
            path_map: self.path_map,
        }
    }

    /// The working directory with its path map.
    pub fn work_dir(&self) -> WorkDir<'_> {
        WorkDir {
            directory: self.directory,
            path_map: self.path_map,
        }
    }

    /// Whether nvcc, and not the user, has put a folder into the `PATH` of the commands.
    pub fn is_nvccs_folder(&self, folder: &Path) -> bool {
        let (Some(all), Some(users)) = (self.variable("PATH"), self.path) else {
            return false;
        };
        let own = all
            .as_encoded_bytes()
            .strip_suffix(users.as_encoded_bytes());
        let own = OsStr::from_bytes(own.unwrap_or_default());
        std::env::split_paths(own).any(|of_nvcc| self.directory.join(of_nvcc) == folder)
    }

    /// Whether the commands' environment has the variable.
    pub fn has_variable(&self, name: &OsStr) -> bool {
        self.environment.iter().any(|(n, _)| n == name)
    }

    /// A variable of the commands' environment, the last one where there are several.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_os_str())
    }
}
