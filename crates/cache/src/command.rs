//! A command that may run on any machine: its arguments, its input files by content, and its outputs; and its result.

use std::path::PathBuf;
use std::time::Duration;

use crate::digest::Digest;

/// A file that a command needs.
#[derive(Debug, Clone)]
pub struct CommandInput {
    /// The path under which the command looks for it, relative to its working directory.
    pub path: String,
    /// The digest of its content.
    pub digest: Digest,
    /// Its path on this machine.
    pub file: PathBuf,
    /// Whether it is a program.
    pub executable: bool,
}

/// A command with everything that it needs.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// The arguments, with the program first. Paths are relative.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Its files, including the program.
    pub inputs: Vec<CommandInput>,
    /// Its output files, relative to its working directory.
    pub outputs: Vec<String>,
}

/// The result of a command.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Its exit code. Unless it is 0, the other fields are empty.
    pub code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// The present path of each output; `None` for an output that was not written.
    pub outputs: Vec<Option<PathBuf>>,
    /// How long it ran on the machine that ran it.
    pub busy: Duration,
}
