//! Runs the user's exact command with the real compiler, in this process's place.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Becomes the compiler. Only comes back when that fails.
pub fn become_compiler(compiler: &Path, args: &[OsString]) -> io::Error {
    let error = Command::new(compiler).args(args).exec();
    io::Error::new(
        error.kind(),
        format!("cannot run {}: {error}", compiler.display()),
    )
}
