//! The engine's interface to other machines: it sends a command with its files, and receives files.

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

/// The machines that can run commands for this one.
pub trait Executor: Sync {
    /// The slots for jobs that these machines take at a time from this machine. Each job that is sent holds one.
    fn slots(&self) -> &Pool;

    /// Estimates of the connection to these machines and of their load, for a command with this program.
    fn estimate(&self, program: &Digest) -> RemoteEstimate;

    /// Whether these machines take commands of this tool at the moment.
    fn takes(&self, tool: Tool) -> bool;

    /// Whether these machines have the tool's programs at the same paths, as the configuration promised. If so, the programs
    /// are not sent.
    fn has(&self, tool: Tool) -> bool;

    /// Whether a step is sent there even if this machine has a free slot.
    fn is_preferred(&self) -> bool;

    /// Runs a job. Returns `None` if it could not be run, or if `unwanted` said that its result is no longer needed.
    /// The implementation reports errors itself. After `None` the command runs here.
    fn execute(&self, job: &RemoteJob<'_>, unwanted: &dyn Fn() -> bool) -> Option<Done>;
}
