//! How a process that compiles is started.

use std::ffi::OsString;
use std::path::PathBuf;

/// The command that starts a process which calls [`serve_compilations`](crate::serve_compilations): the program itself with an argument that it
/// knows, or a program of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl WorkerCommand {
    /// The command that runs `program` with `arguments`.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }
}
