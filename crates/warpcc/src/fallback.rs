//! Replaces this process by the real compiler, with the user's exact command (exec).

use std::ffi::{OsStr, OsString};
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
    put_into_environment(BEHIND, &behind_value(ourselves));
    let error = Command::new(compiler).args(args).exec();
    io::Error::new(
        error.kind(),
        format!("cannot run {}: {error}", compiler.display()),
    )
}

/// Sets a variable of this process. `Command::env` would make a new environment, in which no name is there twice.
#[expect(unsafe_code, reason = "std's other way changes the environment")]
fn put_into_environment(name: &str, value: &OsStr) {
    // SAFETY: the compiler replaces this process next. Until then only std's functions read the environment, and they
    // wait for this one.
    unsafe { std::env::set_var(name, value) };
}
