//! Hooks of functions that ask about a file or the process, and that no other record describes.

use core::ffi::{CStr, c_int, c_uint};

use crate::files::{NO_FILE, NOFOLLOW, itself, itself_there, named, opened, seen};
use crate::hold;
use crate::hook;
use crate::identity::Identity;
use crate::input;
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, ENOTSUP, ETXTBSY, O_ACCMODE, O_CREAT, Any, Path};

const X_OK: c_int = 1;
const W_OK: c_int = 2;
const R_OK: c_int = 4;
/// The number of the `umask` in a record about limits. Other numbers are those of limits.
const UMASK: u8 = 255;

hook! {
    fn access(path: Path, mode: c_int) -> c_int, -1, |r, e| may(AT_FDCWD, path, mode, e);
    fn eaccess(path: Path, mode: c_int) -> c_int, -1, |r, e| may(AT_FDCWD, path, mode, e);
    fn euidaccess(path: Path, mode: c_int) -> c_int, -1, |r, e| may(AT_FDCWD, path, mode, e);
    fn faccessat(at: c_int, path: Path, mode: c_int, flags: c_int) -> c_int, -1, |r, e| may_at(at, path, mode, flags, e);

    fn getxattr(path: Path, name: Path, to: Any, size: usize) -> isize, -1, |r, e| attribute(path, e);
    fn lgetxattr(path: Path, name: Path, to: Any, size: usize) -> isize, -1, |r, e| attribute(path, e);
    fn fgetxattr(file: c_int, name: Path, to: Any, size: usize) -> isize, -1, |r, e| attribute(NONE, e);
    fn listxattr(path: Path, to: Any, size: usize) -> isize, -1, |r, e| attribute(path, e);
    fn llistxattr(path: Path, to: Any, size: usize) -> isize, -1, |r, e| attribute(path, e);
    fn flistxattr(file: c_int, to: Any, size: usize) -> isize, -1, |r, e| attribute(NONE, e);

    fn shm_open(name: Path, flags: c_int, mode: c_uint) -> c_int, -1,
        |r, e| state::path(b'U', b"it opened shared memory");
    fn shmat(segment: c_int, at: Any, flags: c_int) -> isize, -1,
        |r, e| state::path(b'U', b"it used shared memory");
    fn mq_open(name: Path, flags: c_int, mode: c_uint, looks: Any) -> c_int, -1,
        |r, e| state::path(b'U', b"it opened a queue of messages");
    fn open_by_handle_at(mount: c_int, handle: Any, flags: c_int) -> c_int, -1,
        |r, e| state::path(b'U', b"it opened a file without its name");

    fn umask(mask: c_uint) -> c_uint, c_uint::MAX, |r, e| state::path(b'l', &[UMASK]);
    fn getrlimit(resource: c_int, to: Any) -> c_int, -1, |r, e| limit(resource);
    fn getrlimit64(resource: c_int, to: Any) -> c_int, -1, |r, e| limit(resource);
    fn prlimit(process: c_int, resource: c_int, new: Any, old: Any) -> c_int, -1, |r, e| limit(resource);
    fn prlimit64(process: c_int, resource: c_int, new: Any, old: Any) -> c_int, -1, |r, e| limit(resource);

    fn posix_spawn_file_actions_addopen(actions: Any, file: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, flags) }, |r, e| if r == 0 { will_open(path, flags) };
    fn posix_spawn_file_actions_addchdir_np(actions: Any, path: Path) -> c_int, -1, |r, e| will_move();
    fn posix_spawn_file_actions_addfchdir_np(actions: Any, file: c_int) -> c_int, -1, |r, e| will_move();
    fn posix_spawn_file_actions_addchdir(actions: Any, path: Path) -> c_int, -1, |r, e| will_move();
    fn posix_spawn_file_actions_addfchdir(actions: Any, file: c_int) -> c_int, -1, |r, e| will_move();
}

const NONE: Path = core::ptr::null();

/// Logs the result of `faccessat`, which may be about a link itself.
///
/// # Safety
/// As for [`seen`].
unsafe fn may_at(directory: c_int, path: Path, mode: c_int, flags: c_int, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        if flags & NOFOLLOW != 0 {
            match error {
                0 => itself_there(directory, path),
                _ => itself(directory, path, error),
            }
        }
        may(directory, path, mode, error);
    }
}

/// Logs the result of `access`.
///
/// # Safety
/// As for [`seen`].
unsafe fn may(directory: c_int, path: Path, mode: c_int, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        seen(directory, path, b'S', error, NO_FILE);
        if error == 0 {
            input::looked(directory, path);
        }
        let mut full = [0_u8; LONGEST];
        for (asked, kind) in [(X_OK, b'x'), (R_OK | W_OK, b'a')] {
            if error == 0
                && mode & asked != 0
                && let Some(name) = named(directory, path, &mut full)
            {
                match kind {
                    b'a' => state::uses(kind, name),
                    _ => state::path(kind, name),
                }
            }
        }
    }
    if error == ETXTBSY {
        state::path(b'q', b"it asked for permissions that it does not have");
    }
}

/// Logs a look at the attributes of a file, if its file system has any.
///
/// # Safety
/// As for [`seen`].
unsafe fn attribute(path: Path, error: c_int) {
    if error != ENOTSUP {
        state::path(b'U', b"it read attributes of a file");
    }
    // SAFETY: passed on.
    unsafe { seen(AT_FDCWD, path, b'S', if error == sys::ENOENT { error } else { 0 }, NO_FILE) };
}

/// Logs that a limit of the process was asked for.
fn limit(resource: c_int) {
    state::path(b'l', &[u8::try_from(resource).unwrap_or(UMASK)]);
}

/// Logs a file that the C library opens in a child, with its present state.
///
/// # Safety
/// As for [`seen`].
unsafe fn will_open(path: Path, flags: c_int) {
    // SAFETY: as the caller promises.
    unsafe {
        let now = if path.is_null() {
            Identity::default()
        } else {
            Identity::of_path(CStr::from_ptr(path))
        };
        let is_read = flags & (O_ACCMODE | O_CREAT) == 0;
        let mut full = [0_u8; LONGEST];
        if !is_read {
            opened(AT_FDCWD, path, flags, 0, NO_FILE);
        } else if now.mode == 0 {
            seen(AT_FDCWD, path, b'M', 0, NO_FILE);
        } else if let Some(name) = named(AT_FDCWD, path, &mut full) {
            state::file(b'R', &now, name);
        }
    }
}

/// Logs that a child will open files relative to another folder.
fn will_move() {
    state::path(b'U', b"a child that it starts changes its working directory");
}
