//! Replaces this process by the real compiler, with the user's exact command (exec).

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::config::BEHIND;

/// The value that [`BEHIND`] has for programs that warpcc runs.
pub fn behind_value(ourselves: &[PathBuf]) -> OsString {
    std::env::join_paths(ourselves).unwrap_or_default()
}

/// Replaces this process by the compiler. Returns only if that fails.
pub fn become_compiler(compiler: &Path, args: &[OsString], ourselves: &[PathBuf]) -> io::Error {
    let error = Command::new(compiler)
        .args(args)
        .env(BEHIND, behind_value(ourselves))
        .exec();
    io::Error::new(
        error.kind(),
        format!("cannot run {}: {error}", compiler.display()),
    )
}
