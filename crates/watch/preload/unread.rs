//! Notices a file that gcc's compiler proper closes unread. It does this only to compare the file's time, for
//! `#pragma GCC dependency`.
//!
//! It reads a file with one `read`, right before it closes it, also an empty one. It does not close a file that
//! `__has_include` only found. Other programs map files, or read at a place: for them this says nothing, and they are left alone.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::hook;
use crate::identity::Identity;
use crate::state::{self, LONGEST};
use crate::sys::{self, O_ACCMODE};

const NO_FILE: c_int = -1;
/// The descriptor of the last read.
static LAST_READ: AtomicI32 = AtomicI32::new(NO_FILE);
/// Whether this is gcc's compiler proper, and has not closed a file unread. One such file is enough.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

hook! {
    fn close(file: c_int) -> c_int, -1, before { closing(file) }, |r, e| ();
}

/// Finds the real function in advance, as `streams` does.
pub(crate) fn resolve_early() {
    // SAFETY: there is no such file.
    unsafe { close(NO_FILE) };
}

/// Notes which program this is: `cc1`, `cc1plus`, or one that was named after them.
pub(crate) fn started(executable: &[u8]) {
    let folder = executable.iter().rposition(|byte| *byte == b'/');
    let name = &executable[folder.map_or(0, |slash| slash + 1)..];
    let is_gcc = name.windows(3).any(|part| part == b"cc1");
    IS_WATCHED.store(is_gcc, Ordering::Relaxed);
}

/// Notes that a descriptor is of another file now. The one before may have been closed by the C library itself: `fclose` does
/// not call the hook.
pub(crate) fn opened(file: c_int) {
    if LAST_READ.load(Ordering::Relaxed) == file {
        LAST_READ.store(NO_FILE, Ordering::Relaxed);
    }
}

/// Notes a read.
pub(crate) fn read(file: c_int) {
    LAST_READ.store(file, Ordering::Relaxed);
}

fn closing(file: c_int) {
    if IS_WATCHED.load(Ordering::Relaxed) && LAST_READ.swap(NO_FILE, Ordering::Relaxed) != file {
        close_of_another(file);
    }
}

/// Logs the file if nothing was read from it. It is a function of its own because its buffer is large: any program may call
/// `close` on the small stack of a signal handler.
#[inline(never)]
fn close_of_another(file: c_int) {
    let is_unread = sys::position(file) == 0
        && sys::status_flags(file) & O_ACCMODE == 0
        && !Identity::of_open(file).is_folder();
    if is_unread && IS_WATCHED.swap(false, Ordering::Relaxed) {
        let mut name = [0_u8; LONGEST];
        state::path(b'u', sys::name_of_open(file, &mut name));
    }
}
