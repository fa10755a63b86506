//! How a call is carried out: what the launcher, `warpcc run` and `warpcc explain` ask for.

use std::num::NonZeroUsize;
use std::path::Path;

use crate::build::BuildListener;
use crate::progress::Progress;
use crate::request::Request;

/// How a call is carried out.
pub struct CallOptions<'a> {
    /// Whether the call may be a direct hit.
    pub looks_up: bool,
    /// Whether other machines may run steps.
    pub may_use_cluster: bool,
    /// The most tasks at a time; `None` for the number of the settings.
    pub jobs: Option<NonZeroUsize>,
    /// Whether commands run one at a time, in nvcc's order.
    pub sequential: bool,
    /// Whether exactly nvcc's commands run, none of them changed.
    pub faithful: bool,
    /// The folder to copy each command's files to.
    pub save: Option<&'a Path>,
    /// Is called as soon as a command has ended.
    pub listener: Option<&'a dyn BuildListener>,
    /// The progress line on the terminal.
    pub progress: Option<&'a Progress>,
}

impl CallOptions<'_> {
    /// The options of the launcher. The build system uses the terminal, so there is no progress line.
    pub fn for_launcher() -> Self {
        Self {
            looks_up: true,
            may_use_cluster: true,
            jobs: None,
            sequential: false,
            faithful: false,
            save: None,
            listener: None,
            progress: None,
        }
    }

    /// Whether commands that run when another one fails are not ended, as under nvcc's `--threads`. Not for a listener,
    /// which needs the commands one after another.
    pub(super) fn finishes_phase(&self, request: &Request) -> bool {
        request.invocation.threads
            && !self.sequential
            && self.listener.is_none()
            && self.save.is_none()
    }

    /// Whether every step has to leave its files. A step that hits, or that runs on the cluster, leaves only those files
    /// that other steps read.
    pub(super) fn wants_all_files(&self) -> bool {
        self.save.is_some()
    }
}
