//! The options of a build, and its listeners.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::{DiskStore, KeyVariants, Upstream};
use warpcc_engine::{Admission, Executor, Finished};
use warpcc_plan::TaskGraph;

use crate::content_key::ContentKey;
use crate::progress::Progress;

/// How a build is to be done.
pub struct BuildOptions<'a> {
    /// The cache on this disk; `None` where it cannot be used.
    pub store: Option<&'a DiskStore>,
    /// Whether steps may be answered from the cache.
    pub reads_cache: bool,
    /// Whether results are stored in the cache.
    pub writes_cache: bool,
    /// The shared caches.
    pub upstream: Option<&'a dyn Upstream>,
    /// The direct key of the call, in its variants.
    pub keys: &'a KeyVariants,
    /// The content keys of the call.
    pub content_keys: &'a [ContentKey],
    /// At most this many tasks of this call at a time.
    pub jobs: usize,
    /// The machine's budget.
    pub admission: &'a Admission<'a>,
    /// The cluster that runs steps; `None` where all steps run on this machine.
    pub executor: Option<&'a dyn Executor>,
    /// Whether commands run one at a time, in nvcc's order.
    pub sequential: bool,
    /// Whether commands that run when another one fails are not ended, as under nvcc's `--threads`.
    pub finishes_phase: bool,
    /// Whether exactly nvcc's commands run: no command is split, and none starts before nvcc would start it.
    pub faithful: bool,
    /// Whether cicc runs in two halves, the second of which is left out where its input is known.
    pub early_cutoff: bool,
    /// This program's file, and those of the warpccs that started it.
    pub ourselves: &'a [PathBuf],
    /// When this process began.
    pub started: SystemTime,
    /// The folder to which each command's files are copied.
    pub save: Option<&'a Path>,
    /// Is called as soon as a command has ended.
    pub listener: Option<&'a dyn BuildListener>,
    /// The progress line on the terminal, if the user asked for it.
    pub progress: Option<&'a Progress>,
}

/// Is told about the commands of a plan while it runs.
pub trait BuildListener {
    /// A command has ended. In sequential order the next command has not begun, so the files of this one are unchanged. Until
    /// the plan has ended, the call's outputs are below `output_folder`.
    fn finished(&self, graph: &TaskGraph, finished: &Finished, output_folder: &Path);
}
