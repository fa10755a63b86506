//! Announces that cicc has written its stub, long before it ends: warpcc starts the host compile, which includes the stub.
//!
//! cicc's front end writes the stub and the C file, closes the C file, and writes the stub's last line. Then libNVVM takes most of
//! the time, and the end of the stub stays in its stream until cicc ends. So at the first call of a hook after the C file was
//! closed (cicc asks for variables then), the stub's stream is flushed, and a byte is written into warpcc's pipe. Whether the
//! stub was complete is decided by its content at cicc's end.

use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::{Real, streams};
use crate::sys::{self, Any, Path, text};

/// The variable with three lines: the pipe, the file that is announced, and the file whose end announces it.
const VARIABLE: &[u8] = b"WARPCC_WATCH_ANNOUNCE";

/// The stream of the file that is announced, while it is open.
static ANNOUNCED: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());
/// The stream of the file whose end announces it.
static LAST: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());

/// Whether the file is to be announced at the next call of a hook.
static IS_DUE: AtomicBool = AtomicBool::new(false);

/// The lines of the variable.
fn lines() -> Option<[&'static [u8]; 3]> {
    let mut lines = sys::variable(VARIABLE)?.to_bytes().split(|byte| *byte == b'\n');
    Some([lines.next()?, lines.next()?, lines.next()?])
}

/// Notes the stream of one of the two files.
///
/// # Safety
/// `path` is null or NUL-terminated.
pub(crate) unsafe fn opened(path: Path, stream: Any) {
    // SAFETY: as the caller promises.
    let (Some([_, announced, last]), Some(path)) = (lines(), unsafe { text(path) }) else {
        return;
    };
    if path == announced {
        ANNOUNCED.store(stream, Ordering::Relaxed);
    } else if path == last {
        LAST.store(stream, Ordering::Relaxed);
    }
}

/// Notes that a stream was closed. Only its address is used.
pub(crate) fn closed(stream: Any) {
    if stream.is_null() {
        return;
    }
    if ANNOUNCED.load(Ordering::Relaxed) == stream {
        // Another stream may get this address.
        ANNOUNCED.store(null_mut(), Ordering::Relaxed);
    } else if LAST.load(Ordering::Relaxed) == stream {
        LAST.store(null_mut(), Ordering::Relaxed);
        IS_DUE.store(true, Ordering::Relaxed);
    }
}

/// Announces the file if it is due. Every hook calls it.
pub(crate) fn if_due() {
    if IS_DUE.load(Ordering::Relaxed) && IS_DUE.swap(false, Ordering::Relaxed) {
        // SAFETY: errno is this thread's.
        let errno = unsafe { *sys::__errno_location() };
        announce();
        // SAFETY: as above.
        unsafe { *sys::__errno_location() = errno };
    }
}

/// Flushes the file, and writes into the pipe. It is a function of its own because its buffer is large.
#[inline(never)]
fn announce() {
    static FLUSH: Real = Real::new();
    let announced = ANNOUNCED.load(Ordering::Relaxed);
    let (Some([pipe, ..]), Some(flush)) = (lines(), FLUSH.get("fflush\0")) else {
        return;
    };
    let mut name = [0_u8; 4096];
    if announced.is_null() || pipe.len() >= name.len() {
        return;
    }
    name[..pipe.len()].copy_from_slice(pipe);
    // SAFETY: the stream is open: its address is forgotten when it is closed. fflush has this signature.
    let flushed = unsafe {
        let flush: unsafe extern "C" fn(Any) -> c_int = core::mem::transmute(flush);
        flush(announced)
    };
    if flushed == 0 {
        sys::signal_pipe(name.as_ptr());
    } else {
        // SAFETY: errno is this thread's. What the stream held is lost, even if there is room at the program's end.
        streams::written(unsafe { *sys::__errno_location() });
    }
}
