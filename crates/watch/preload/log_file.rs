//! Appending to the log in a process of the user's: a full disk or `ulimit -f` costs records, never the process.

use core::ffi::{c_int, c_long};
use core::ptr::null_mut;

use crate::sys::{
    __errno_location, AT_FDCWD, EFBIG, EINTR, O_APPEND, O_CLOEXEC, O_CREAT, O_WRONLY, numbers,
    syscall,
};

/// A set of signals as the kernel has it: bit 0 is signal 1.
type Signals = u64;

/// What the kernel sends for a write beyond `ulimit -f`: signal 25. signal(7)
const SIGXFSZ: Signals = 1 << 24;
const SIG_BLOCK: c_int = 0;
const SIG_SETMASK: c_int = 2;

/// Appends to the file in one write; returns false if not all bytes were written. `path` is NUL-terminated.
pub(crate) fn append(path: *const u8, bytes: &[u8]) -> bool {
    // SAFETY: the caller gives a NUL-terminated path.
    let file = unsafe {
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
        syscall(numbers::OPENAT, AT_FDCWD, path, flags, 0o666 as c_int)
    };
    if file < 0 {
        return false;
    }
    let written = without_size_signal(|| write(file, bytes));
    // SAFETY: the descriptor is ours.
    unsafe { syscall(numbers::CLOSE, file) };
    usize::try_from(written) == Ok(bytes.len())
}

/// The number of bytes written, or the negative errno.
fn write(file: c_long, bytes: &[u8]) -> c_long {
    loop {
        // SAFETY: an open descriptor, and a slice.
        let (written, error) = unsafe {
            let written = syscall(numbers::WRITE, file, bytes.as_ptr(), bytes.len());
            (written, *__errno_location())
        };
        match (written, error) {
            (0.., _) => return written,
            (_, EINTR) => {}
            _ => return c_long::from(-error),
        }
    }
}

/// Runs the write so that `ulimit -f` makes it fail, and does not end the process.
///
/// The kernel sends the signal to the thread that writes. So it is blocked in this thread, and taken back if it came, also
/// where the program itself has blocked it: it would find it later, and end then. A signal that was waiting before stays.
fn without_size_signal(write: impl FnOnce() -> c_long) -> c_long {
    let size = size_of::<Signals>();
    let (mut before, mut waiting): (Signals, Signals) = (0, 0);
    let none = null_mut::<Signals>();
    // SAFETY: all sets have the size that is said.
    let is_blocked = unsafe {
        let (block, set) = (SIG_BLOCK, &raw const SIGNAL);
        syscall(numbers::RT_SIGPENDING, &raw mut waiting, size) == 0
            && syscall(numbers::RT_SIGPROCMASK, block, set, &raw mut before, size) == 0
    };
    let written = write();
    if is_blocked {
        // SAFETY: as above; a time of zero returns at once.
        unsafe {
            if written == c_long::from(-EFBIG) && waiting & SIGXFSZ == 0 {
                let (set, no_wait) = (&raw const SIGNAL, &raw const NO_WAIT);
                syscall(numbers::RT_SIGTIMEDWAIT, set, none, no_wait, size);
            }
            syscall(numbers::RT_SIGPROCMASK, SIG_SETMASK, &raw const before, none, size);
        }
    }
    written
}

static SIGNAL: Signals = SIGXFSZ;

/// `struct timespec` of zero.
static NO_WAIT: [c_long; 2] = [0, 0];
