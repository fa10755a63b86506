//! Runs the user's exact command with the real compiler, in this process's place.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::config::BEHIND;

/// The value of [`BEHIND`] for programs that we run.
pub fn behind(ourselves: &[PathBuf]) -> OsString {
    std::env::join_paths(ourselves).unwrap_or_default()
}

/// Becomes the compiler. Only comes back when that fails.
pub fn become_compiler(compiler: &Path, args: &[OsString], ourselves: &[PathBuf]) -> io::Error {
    let error = Command::new(compiler)
        .args(args)
        .env(BEHIND, behind(ourselves))
        .exec();
    io::Error::new(
        error.kind(),
        format!("cannot run {}: {error}", compiler.display()),
    )
}
