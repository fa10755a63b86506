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
    /// What it is.
    pub tool: Tool,
    /// With its files.
    pub command: Command,
    /// An empty folder here for what it writes.
    pub folder: &'a Path,
}

/// Other machines.
pub trait Executor: Sync {
    /// How many jobs they take at a time, from all of this machine: who sends one holds a slot.
    fn slots(&self) -> &Pool;

    /// What is known of the way to them, and of their work, for a command with this program.
    fn estimate(&self, program: &Digest) -> RemoteEstimate;

    /// Whether they take this tool's, as things stand.
    fn takes(&self, tool: Tool) -> bool;

    /// Whether they have the tool's programs where they are here, as somebody promised: then these are not sent.
    fn has(&self, tool: Tool) -> bool;

    /// Whether a step goes there although this machine has a slot free.
    fn is_preferred(&self) -> bool;

    /// Runs a job; nothing when it could not be run, or `unwanted` said that nobody needs it any more. Whatever goes
    /// wrong there is the implementation's to tell; the command then runs here.
    fn execute(&self, job: &RemoteJob<'_>, unwanted: &dyn Fn() -> bool) -> Option<Done>;
}
