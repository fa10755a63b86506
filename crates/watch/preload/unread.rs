//! Notices a file that is closed unread. gcc does this only to compare the file's time, for `#pragma GCC dependency`.
//!
//! gcc reads a file with one `read`, right before it closes it, also an empty one. It does not close a file that
//! `__has_include` only found. Other programs map files, or read at a place: for them this says nothing.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::hook;
use crate::identity::Identity;
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, Any, O_ACCMODE};

const NO_FILE: c_int = -1;
/// The descriptor of the last read.
static LAST_READ: AtomicI32 = AtomicI32::new(NO_FILE);
/// One such file is enough.
static IS_LOGGED: AtomicBool = AtomicBool::new(false);

hook! {
    fn close(file: c_int) -> c_int, -1, before { closing(file) }, |r, e| ();
}

/// Finds the real function in advance, as `streams` does.
pub(crate) fn resolve_early() {
    // SAFETY: there is no such file.
    unsafe { close(NO_FILE) };
}

/// Notes a read.
pub(crate) fn read(file: c_int) {
    LAST_READ.store(file, Ordering::Relaxed);
}

/// Logs the file if nothing was read from it.
fn closing(file: c_int) {
    let was_read = LAST_READ.swap(NO_FILE, Ordering::Relaxed) == file;
    if was_read || file < 0 || IS_LOGGED.load(Ordering::Relaxed) {
        return;
    }
    let is_unread = sys::status_flags(file) & O_ACCMODE == 0
        && Identity::of_open(file).is_file()
        && sys::position(file) == 0;
    if is_unread && !IS_LOGGED.swap(true, Ordering::Relaxed) {
        let mut name = [0_u8; LONGEST];
        state::path(b'u', sys::name_of_open(file, &mut name));
    }
}
