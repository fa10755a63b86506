//! The folder in which nvcc makes its intermediate files, and whether it can.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// Why a call is bypassed: nvcc then puts intermediate files below `/`, and some of its tools do not find them there.
pub const EMPTY_TMPDIR: &str = "an empty TMPDIR";

/// Why a call is bypassed: nvcc fails because it cannot make intermediate files.
pub const NO_TEMPORARY_FOLDER: &str = "no temporary folder";

/// The folder, for a call in `directory` with this value of `TMPDIR`.
pub fn of(directory: &Path, tmpdir: Option<&OsStr>) -> PathBuf {
    tmpdir
        .filter(|t| !t.is_empty())
        .map_or_else(|| PathBuf::from("/tmp"), |t| directory.join(t))
}

/// Why nvcc fails for want of the folder, if it does.
pub fn why_unusable(directory: &Path, tmpdir: Option<&OsStr>) -> Option<&'static str> {
    if tmpdir.is_some_and(OsStr::is_empty) {
        return Some(EMPTY_TMPDIR);
    }
    // With a slash at its end, a path names nothing but a folder.
    let folder = of(directory, tmpdir).join("");
    let access = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, folder, access, AtFlags::empty())
        .is_err()
        .then_some(NO_TEMPORARY_FOLDER)
}
