//! Hooks of the functions that make, remove and rename names, and that change a file's mode, owner or times.
//!
//! An attempt that fails is a look: it would do something else, or say nothing, if its folder or the name were there.

use core::ffi::{c_char, c_int, c_uint};

use crate::files::{NO_FILE, is_refusal, itself, named, seen};
use crate::hold::{self, Change};
use crate::hook;
use crate::state::{self, LONGEST};
use crate::sys::{Any, Path, AT_FDCWD, EEXIST, ENOENT, ENOTEMPTY, ENOTSUP, EXDEV};

/// A path, and the open directory from which it starts.
type Name = (c_int, Path);

const NONE: Any = core::ptr::null_mut();

hook! {
    fn mkstemp(path: *mut c_char) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkstemp64(path: *mut c_char) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkstemps(path: *mut c_char, suffix: c_int) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkstemps64(path: *mut c_char, suffix: c_int) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkostemp(path: *mut c_char, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkostemp64(path: *mut c_char, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkdtemp(path: *mut c_char) -> Any, NONE,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkdir(path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkdirat(at: c_int, path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before(Change::Make, at, path) }, |r, e| made(at, path, e);
    fn mkfifo(path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mkfifoat(at: c_int, path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before(Change::Make, at, path) }, |r, e| made(at, path, e);
    fn mknod(path: Path, mode: c_uint, device: u64) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, path) }, |r, e| made(AT_FDCWD, path, e);
    fn mknodat(at: c_int, path: Path, mode: c_uint, device: u64) -> c_int, -1,
        before { hold::before(Change::Make, at, path) }, |r, e| made(at, path, e);
    fn link(from: Path, to: Path) -> c_int, -1,
        before { hold_link((AT_FDCWD, from), (AT_FDCWD, to)) }, |r, e| linked((AT_FDCWD, from), (AT_FDCWD, to), e);
    fn linkat(from_at: c_int, from: Path, at: c_int, to: Path, flags: c_int) -> c_int, -1,
        before { hold_link((from_at, from), (at, to)) }, |r, e| linked((from_at, from), (at, to), e);
    fn symlink(from: Path, to: Path) -> c_int, -1,
        before { hold::before(Change::Make, AT_FDCWD, to) }, |r, e| pointed(AT_FDCWD, to, e);
    fn symlinkat(from: Path, at: c_int, to: Path) -> c_int, -1,
        before { hold::before(Change::Make, at, to) }, |r, e| pointed(at, to, e);

    fn rename(from: Path, to: Path) -> c_int, -1,
        before { hold_rename((AT_FDCWD, from), (AT_FDCWD, to)) }, |r, e| renamed((AT_FDCWD, from), (AT_FDCWD, to), e);
    fn renameat(from_at: c_int, from: Path, at: c_int, to: Path) -> c_int, -1,
        before { hold_rename((from_at, from), (at, to)) }, |r, e| renamed((from_at, from), (at, to), e);
    fn renameat2(from_at: c_int, from: Path, at: c_int, to: Path, flags: c_uint) -> c_int, -1,
        before { hold_rename((from_at, from), (at, to)) }, |r, e| renamed((from_at, from), (at, to), e);
    fn unlink(path: Path) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| removed(AT_FDCWD, path, e);
    fn unlinkat(at: c_int, path: Path, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Take, at, path) }, |r, e| removed(at, path, e);
    fn rmdir(path: Path) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| removed(AT_FDCWD, path, e);
    fn remove(path: Path) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| removed(AT_FDCWD, path, e);

    fn truncate(path: Path, length: i64) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn truncate64(path: Path, length: i64) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn chmod(path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn lchmod(path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn fchmodat(at: c_int, path: Path, mode: c_uint, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Modify, at, path) }, |r, e| changed(at, path, e);
    fn chown(path: Path, user: c_uint, group: c_uint) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn lchown(path: Path, user: c_uint, group: c_uint) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn fchownat(at: c_int, path: Path, user: c_uint, group: c_uint, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Modify, at, path) }, |r, e| changed(at, path, e);
    fn utime(path: Path, times: Any) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn utimes(path: Path, times: Any) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn lutimes(path: Path, times: Any) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| changed(AT_FDCWD, path, e);
    fn futimesat(at: c_int, path: Path, times: Any) -> c_int, -1,
        before { hold::before(Change::Modify, at, path) }, |r, e| changed(at, path, e);
    fn utimensat(at: c_int, path: Path, times: Any, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Modify, at, path) }, |r, e| changed(at, path, e);

    fn fchmod(file: c_int, mode: c_uint) -> c_int, -1, before { hold::before_descriptor(file) }, |r, e| ();
    fn fchown(file: c_int, user: c_uint, group: c_uint) -> c_int, -1, before { hold::before_descriptor(file) }, |r, e| ();
    fn futimens(file: c_int, times: Any) -> c_int, -1, before { hold::before_descriptor(file) }, |r, e| ();
    fn futimes(file: c_int, times: Any) -> c_int, -1, before { hold::before_descriptor(file) }, |r, e| ();
    fn fsetxattr(file: c_int, name: Path, value: Any, size: usize, flags: c_int) -> c_int, -1,
        before { hold::before_descriptor(file) }, |r, e| set_attribute(e);
    fn fremovexattr(file: c_int, name: Path) -> c_int, -1,
        before { hold::before_descriptor(file) }, |r, e| set_attribute(e);
    fn setxattr(path: Path, name: Path, value: Any, size: usize, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| set_attribute(e);
    fn lsetxattr(path: Path, name: Path, value: Any, size: usize, flags: c_int) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| set_attribute(e);
    fn removexattr(path: Path, name: Path) -> c_int, -1,
        before { hold::before(Change::Modify, AT_FDCWD, path) }, |r, e| set_attribute(e);
    fn lremovexattr(path: Path, name: Path) -> c_int, -1,
        before { hold::before(Change::Take, AT_FDCWD, path) }, |r, e| set_attribute(e);
}

/// Logs that an attribute was set, or could not be. No record can repeat that.
fn set_attribute(error: c_int) {
    if error != ENOTSUP {
        state::path(b'U', b"it set attributes of a file");
    }
}

/// Ends the process if the new name is not the call's own, or the file is not: its number of names changes.
///
/// # Safety
/// As for [`seen`].
unsafe fn hold_link(from: Name, to: Name) {
    // SAFETY: passed on.
    unsafe {
        if hold::is_there(from.0, from.1) {
            hold::before(Change::Take, from.0, from.1);
        }
        hold::before(Change::Make, to.0, to.1);
    }
}

/// Ends the process if one of the names is not the call's own, and there is something to rename.
///
/// # Safety
/// As for [`seen`].
unsafe fn hold_rename(from: Name, to: Name) {
    // SAFETY: passed on.
    unsafe {
        hold::before(Change::Take, from.0, from.1);
        if hold::is_there(from.0, from.1) {
            hold::before(Change::Write, to.0, to.1);
        }
    }
}

/// Logs that a name was made, or could not be.
///
/// # Safety
/// As for [`seen`].
unsafe fn made(directory: c_int, path: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        match error {
            0 => seen(directory, path, b'W', 0, NO_FILE),
            ENOENT => not_made(directory, path),
            _ if is_refusal(error) => refused(directory, path, error),
            _ => seen(directory, path, b'S', error, NO_FILE),
        }
    }
}

/// Logs that a link was made, or could not be. What is written to the link's name is written to another file.
///
/// # Safety
/// As for [`seen`].
unsafe fn pointed(directory: c_int, path: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        if error == 0 {
            seen(directory, path, b'p', 0, NO_FILE);
        }
        made(directory, path, error);
    }
}

/// Logs that a name could not be made because its folder is missing.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn not_made(directory: c_int, path: Path) {
    let mut full = [0_u8; LONGEST];
    // SAFETY: as the caller promises.
    let Some(name) = (unsafe { named(directory, path, &mut full) }) else {
        return;
    };
    match folder_of(name) {
        b"." | b"/" => state::path(b'U', b"a name could not be made"),
        folder => state::path(b'M', folder),
    }
}

/// The folder in which a name is; `.` and `/` where it is in no other.
fn folder_of(mut name: &[u8]) -> &[u8] {
    while let [shorter @ .., b'/'] = name {
        name = shorter;
    }
    match name.iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(end) => &name[..end],
    }
}

/// Logs that a name may not be made, removed or given to another file. The permissions of its folder say so, or those of the
/// file that has the name.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn refused(directory: c_int, path: Path, error: c_int) {
    let mut full = [0_u8; LONGEST];
    // SAFETY: as the caller promises.
    unsafe {
        let Some(name) = named(directory, path, &mut full) else {
            return;
        };
        state::uses(b'y', folder_of(name));
        if hold::is_there(directory, path) {
            seen(directory, path, b'S', error, NO_FILE);
        } else if hold::is_itself_there(directory, path) {
            // The permissions of the folder to which it leads may count.
            state::path(b'U', b"a name behind a link could not be made");
        } else {
            seen(directory, path, b'O', 0, NO_FILE);
        }
    }
}

/// Logs that a name was removed, or could not be.
///
/// # Safety
/// As for [`seen`].
unsafe fn removed(directory: c_int, path: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        match error {
            0 => seen(directory, path, b'K', 0, NO_FILE),
            // Of a folder.
            ENOTEMPTY => seen(directory, path, b'D', 0, NO_FILE),
            _ if is_refusal(error) => refused(directory, path, error),
            _ => itself(directory, path, error),
        }
    }
}

/// Logs that a file was renamed, or could not be.
///
/// # Safety
/// As for [`seen`].
unsafe fn renamed(from: Name, to: Name, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        match error {
            0 => {
                removed(from.0, from.1, 0);
                made(to.0, to.1, 0);
            }
            _ => not_placed(from, to, error),
        }
    }
}

/// Logs that a file got another name, or could not get it.
///
/// # Safety
/// As for [`seen`].
unsafe fn linked(from: Name, to: Name, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        match error {
            0 => {
                // What is written to the new name is written to this file.
                seen(from.0, from.1, b'W', 0, NO_FILE);
                made(to.0, to.1, 0);
            }
            _ => not_placed(from, to, error),
        }
    }
}

/// Logs that a file could not get the name `to`.
///
/// # Safety
/// As for [`seen`].
unsafe fn not_placed(from: Name, to: Name, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        match error {
            // The program copies the file instead.
            EXDEV => seen(from.0, from.1, b'S', 0, NO_FILE),
            _ if is_refusal(error) => {
                refused(from.0, from.1, error);
                refused(to.0, to.1, error);
            }
            EEXIST => seen(to.0, to.1, b'S', 0, NO_FILE),
            ENOENT if hold::is_itself_there(from.0, from.1) => not_made(to.0, to.1),
            ENOENT => itself(from.0, from.1, error),
            // Either name may be the cause.
            _ => state::path(b'U', b"a file could not be renamed or linked"),
        }
    }
}

/// Logs that a file was changed, or could not be. Without a name, the file is an open one, which was logged before.
///
/// # Safety
/// As for [`seen`].
unsafe fn changed(directory: c_int, path: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        match error {
            0 => seen(directory, path, b'W', 0, NO_FILE),
            _ => itself(directory, path, error),
        }
    }
}
