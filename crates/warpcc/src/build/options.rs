//! The options of a build, and its listeners.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::{DiskStore, KeyVariants, Upstream};
use warpcc_engine::{Admission, Executor, Finished};
use warpcc_plan::TaskGraph;

use crate::progress::Progress;
use crate::twin::Twin;

/// How a build is to be done.
pub struct BuildOptions<'a> {
    /// The cache, if it can be used.
    pub store: Option<&'a DiskStore>,
    /// Whether results may come from it.
    pub reads_cache: bool,
    /// Whether results may go into it.
    pub writes_cache: bool,
    /// The shared caches behind it.
    pub upstream: Option<&'a dyn Upstream>,
    /// The keys of the whole call.
    pub keys: &'a KeyVariants,
    /// Calls that may share its result.
    pub twins: &'a [Twin],
    /// At most this many tasks of this call at a time.
    pub jobs: usize,
    /// The machine's budget.
    pub admission: &'a Admission<'a>,
    /// Other machines, if there are any.
    pub executor: Option<&'a dyn Executor>,
    /// One at a time, in nvcc's order.
    pub sequential: bool,
    /// Exactly nvcc's commands: nothing overlapped, nothing started early.
    pub faithful: bool,
    /// This program, and those that started it.
    pub ourselves: &'a [PathBuf],
    /// When this process began.
    pub started: SystemTime,
    /// Where each command's files are to be copied.
    pub save: Option<&'a Path>,
    /// Who looks at each command's files as soon as it has ended.
    pub listener: Option<&'a dyn BuildListener>,
    /// The line on the terminal, if somebody asked for it.
    pub progress: Option<&'a Progress>,
}

/// Looks on while a plan runs.
pub trait BuildListener {
    /// A command has ended. In sequential order the next one has not begun, and what it wrote is
    /// still as it wrote it. Outputs of the call are in `aside` until the plan has ended.
    fn finished(&self, graph: &TaskGraph, finished: &Finished, aside: &Path);
}
