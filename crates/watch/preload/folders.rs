//! Logs where the name of a folder leads that a program opens or enters: it may then look for names below the folder without
//! this name, and the log has them below the real one.

use core::ffi::c_int;

use crate::files::{NO_FILE, named, seen};
use crate::identity::Identity;
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, Any, Path, text};

/// Logs where the name leads by which `file` was opened, if that is a folder with another name.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn opened(directory: c_int, path: Path, file: c_int) {
    if file < 0 || !Identity::of_open(file).is_folder() {
        return;
    }
    let [mut full, mut real, mut whole] = [[0_u8; LONGEST]; 3];
    // SAFETY: as the caller promises.
    let Some(name) = (unsafe { named(directory, path, &mut full) }) else {
        return;
    };
    let real = sys::name_of_open(file, &mut real);
    let itself = match name.first() {
        Some(b'/') => name,
        _ => sys::absolute(without_dots(name), &mut whole),
    };
    if real.first() == Some(&b'/') && without_slashes(itself) != real {
        state::leads(b'Z', name, real);
    }
}

/// Logs the names of a folder that was opened by its name, and where that leads.
///
/// # Safety
/// As for [`seen`]; `stream` is null or of `opendir`.
pub(crate) unsafe fn listed_by_name(path: Path, error: c_int, stream: Any) {
    // SAFETY: passed on.
    unsafe {
        seen(AT_FDCWD, path, b'D', error, NO_FILE);
        if !stream.is_null() {
            opened(AT_FDCWD, path, sys::dirfd(stream));
        }
    }
}

/// Logs that the working directory is another one, or could not be.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn moved(path: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        seen(AT_FDCWD, path, b'S', error, NO_FILE);
        if error != 0 {
            return;
        }
        let mut real = [0_u8; LONGEST];
        let real = sys::cwd(&mut real);
        let name = text(path).unwrap_or_default();
        // A relative name began at the folder before.
        if !real.is_empty() && without_slashes(name) != real {
            state::leads(b'Z', name, real);
        }
    }
    state::directory_changed();
}

/// A relative name without `./` in front; empty for `.` itself.
fn without_dots(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"./") {
        name = rest;
    }
    match name {
        b"." => &[],
        name => name,
    }
}

fn without_slashes(mut name: &[u8]) -> &[u8] {
    while let [rest @ .., b'/'] = name {
        if rest.is_empty() {
            break;
        }
        name = rest;
    }
    name
}
