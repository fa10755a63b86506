//! What runs commands on other machines, as far as the engine knows: a command with its files goes out, files come back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use warpcc_cache::Digest;
use warpcc_plan::Tool;

/// A file that a command needs.
#[derive(Debug, Clone)]
pub struct Input {
    /// Relative to the command's folder there.
    pub path: String,
    /// Its content.
    pub digest: Digest,
    /// Where it is here.
    pub file: PathBuf,
    /// Whether it is a program.
    pub executable: bool,
}

/// A command for another machine.
#[derive(Debug)]
pub struct Job<'a> {
    /// What it is.
    pub tool: Tool,
    /// Its words, the program first.
    pub arguments: Vec<String>,
    /// Its variables.
    pub environment: Vec<(String, String)>,
    /// What it needs, the tool itself included.
    pub inputs: Vec<Input>,
    /// What it writes, relative to its folder there.
    pub outputs: Vec<String>,
    /// An empty folder here for what it wrote.
    pub folder: &'a Path,
}

/// What came of a job.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Its exit code; there is more only where it is 0.
    pub code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Where each output is now; nothing for one that was not written.
    pub outputs: Vec<Option<PathBuf>>,
    /// How long it took there.
    pub busy: Duration,
}

/// Other machines.
pub trait Executor: Sync {
    /// How many jobs they take at a time.
    fn slots(&self) -> usize;

    /// Whether they take this tool's, as things stand.
    fn takes(&self, tool: Tool) -> bool;

    /// Whether a step goes there although this machine has a slot free.
    fn is_preferred(&self) -> bool;

    /// Runs a job; nothing when it could not be run, or `unwanted` said that nobody needs it any more. Whatever goes
    /// wrong there is the implementation's to tell; the command then runs here.
    fn execute(&self, job: &Job<'_>, unwanted: &dyn Fn() -> bool) -> Option<Done>;
}
