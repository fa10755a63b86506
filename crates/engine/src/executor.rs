//! The engine's interface to other machines: a command with its files goes out, files come back.

use std::path::Path;

use warpcc_budget::Pool;
use warpcc_cache::Digest;
use warpcc_cache::command::{Command, Done};
use warpcc_plan::Tool;

pub use crate::placement::RemoteEstimate;

/// A command for another machine.
#[derive(Debug)]
pub struct RemoteJob<'a> {
    /// The tool to run.
    pub tool: Tool,
    /// The command and its files.
    pub command: Command,
    /// An empty local folder for its outputs.
    pub folder: &'a Path,
}

/// Other machines.
pub trait Executor: Sync {
    /// The slots for jobs that these machines take at a time, from all of this machine. A job that is sent holds one.
    fn slots(&self) -> &Pool;

    /// Estimates of the connection to these machines and of their load, for a command with this program.
    fn estimate(&self, program: &Digest) -> RemoteEstimate;

    /// Whether these machines take commands of this tool at the moment.
    fn takes(&self, tool: Tool) -> bool;

    /// Whether these machines have the tool's programs at the same paths, as the configuration promised: then the
    /// programs are not sent.
    fn has(&self, tool: Tool) -> bool;

    /// Whether a step goes there although this machine has a slot free.
    fn is_preferred(&self) -> bool;

    /// Runs a job; `None` when it could not be run, or when `unwanted` said that its result is no longer needed. The
    /// implementation reports errors itself; the command then runs here.
    fn execute(&self, job: &RemoteJob<'_>, unwanted: &dyn Fn() -> bool) -> Option<Done>;
}
