//! The environment of this process: the only reader.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A variable of this process.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Switches off the guards that a test names; in release builds there is nothing to switch.
#[cfg(debug_assertions)]
pub fn switch_guards_off() {
    if let Some(guards) = variable("WARPCC_TEST_UNSOUND") {
        warpcc_cache::guards::switch_off(&guards.to_string_lossy());
    }
}

/// A warpcc that runs another program puts the path of its own file into this variable. If that program is a second
/// warpcc, perhaps a copy, it then only runs the compiler.
pub const BEHIND: &str = "WARPCC_BEHIND";

/// This program's file first, then those of the warpccs that started it; and whether `/proc` tells the first.
pub fn ourselves() -> (Vec<PathBuf>, bool) {
    let own = std::env::current_exe().and_then(|file| file.canonicalize());
    let has_proc = own.is_ok();
    let mut files = vec![own.unwrap_or_else(|_| started_by_name())];
    if let Some(behind) = variable(BEHIND) {
        files.extend(std::env::split_paths(&behind).filter(|p| !p.as_os_str().is_empty()));
    }
    (files, has_proc)
}

/// This program's file where `/proc` does not tell it: by the name with which the kernel was asked to start it. Without
/// it, a link named nvcc could not be told from the real nvcc.
fn started_by_name() -> PathBuf {
    let name = OsStr::from_bytes(rustix::param::linux_execfn().to_bytes());
    Path::new(name)
        .canonicalize()
        .unwrap_or_else(|_| PathBuf::from(name))
}

/// Whether the user wants no colours, see no-color.org.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoColor {
    /// No colours.
    Asked,
    /// `NO_COLOR` is unset or empty.
    NotAsked,
}

/// Reads `NO_COLOR`, which asks for no colours unless it is empty.
pub fn no_color() -> NoColor {
    match variable("NO_COLOR") {
        Some(value) if !value.is_empty() => NoColor::Asked,
        _ => NoColor::NotAsked,
    }
}

/// The environment of this process, whole: compilers get it as it is.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}
