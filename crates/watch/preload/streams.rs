//! Hooks of the functions that read and write open files: they log a write for which there is no room, and a read of
//! standard input.

use core::ffi::{c_int};

use crate::identity::Identity;
use crate::input::read_nothing;
use crate::state;
use crate::sys::{self, EDQUOT, EIO, ENOSPC, Any};
use crate::{Real, announce, hook, unread};

hook! {
    fn read(file: c_int, to: Any, size: usize) -> isize, -1, |r, e| was_read(file, r == 0 && size > 0);
    fn __read_chk(file: c_int, to: Any, size: usize, whole: usize) -> isize, -1,
        |r, e| was_read(file, r == 0 && size > 0);
    fn readv(file: c_int, to: Any, count: c_int) -> isize, -1, |r, e| was_read(file, r == 0 && count > 0);
    fn write(file: c_int, from: Any, size: usize) -> isize, -1, |r, e| written(e);
    fn writev(file: c_int, from: Any, count: c_int) -> isize, -1, |r, e| written(e);
    fn pwrite(file: c_int, from: Any, size: usize, at: i64) -> isize, -1, |r, e| written(e);
    fn pwrite64(file: c_int, from: Any, size: usize, at: i64) -> isize, -1, |r, e| written(e);
    fn fflush(stream: Any) -> c_int, -1, |r, e| written(e);
}

/// Finds the real functions in advance: a fork child of a threaded program may call them when the loader's lock is held for
/// ever.
pub(crate) fn resolve_early() {
    const NO_FILE: c_int = -1;
    let nothing = core::ptr::null_mut();
    // SAFETY: there is no such file; nothing is read or written.
    unsafe {
        read(NO_FILE, nothing, 0);
        write(NO_FILE, nothing, 0);
    }
}

/// Notes a read, and logs one that found the end of standard input.
fn was_read(file: c_int, is_at_end: bool) {
    unread::read(file);
    if is_at_end {
        read_nothing(file);
    }
}

/// Logs a write for which there was no room. Some tools still end with success, and with half of a file.
pub(crate) fn written(error: c_int) {
    if matches!(error, ENOSPC | EDQUOT | EIO) {
        state::path(b'r', b"");
    }
}

/// Logs that standard input was read through the C library's stream, whose reads do not call the hooks.
pub(crate) fn ending() {
    // SAFETY: the stream belongs to the C library, which made it before any other code ran.
    let at_end = unsafe { !sys::stdin.is_null() && sys::feof_unlocked(sys::stdin) != 0 };
    if at_end {
        read_nothing(0);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fclose(stream: Any) -> c_int {
    static REAL: Real = Real::new();
    let Some(real) = REAL.get("fclose\0") else {
        return -1;
    };
    // SAFETY: the caller's argument, passed on to the function it meant.
    unsafe {
        // Errors of the stream's own writes are recorded only in its state.
        let spoiled = !stream.is_null()
            && sys::ferror(stream) != 0
            && sys::__fwriting(stream) != 0
            && Identity::of_open(sys::fileno(stream)).is_file();
        if !stream.is_null() && sys::feof_unlocked(stream) != 0 {
            let errno = *sys::__errno_location();
            read_nothing(sys::fileno(stream));
            *sys::__errno_location() = errno;
        }
        let real: unsafe extern "C" fn(Any) -> c_int = core::mem::transmute(real);
        let result = real(stream);
        let errno = *sys::__errno_location();
        if spoiled {
            written(ENOSPC);
        } else if result != 0 {
            written(errno);
        }
        announce::closed(stream);
        *sys::__errno_location() = errno;
        result
    }
}
