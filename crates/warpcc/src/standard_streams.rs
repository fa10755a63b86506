//! The standard streams that this process inherited: which were closed, and whether two are the same.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fd::BorrowedFd;
use rustix::fs::fstat;
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

/// The reason for bypassing a call that was started with a closed standard stream.
pub const CLOSED: &str = "a standard stream is closed";
/// The reason for bypassing a call: a tool prints to standard output and standard error, and both are the same file.
pub const MIXED: &str = "messages on two streams that are one";

/// One bit for each of the three streams: whether it was closed when this process started.
static WERE_CLOSED: AtomicU8 = AtomicU8::new(0);

/// Runs before `main`, because Rust's runtime opens `/dev/null` in place of a closed stream.
extern "C" fn note_closed_streams() {
    for number in 0..3 {
        if fcntl_getfd(stream(number)) == Err(Errno::BADF) {
            WERE_CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
#[expect(unsafe_code, reason = "nothing else runs before the runtime does")]
static LOOK: extern "C" fn() = note_closed_streams;

#[expect(unsafe_code, reason = "the standard streams are never closed here")]
fn stream(number: i32) -> BorrowedFd<'static> {
    // SAFETY: not -1; a number that nothing is open under is an error of the call that it is given to.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Whether one of the streams was closed when this process started.
pub fn any_was_closed() -> bool {
    WERE_CLOSED.load(Ordering::Relaxed) != 0
}

/// Makes sure that the program that this process becomes finds the same streams closed.
pub fn close_again() {
    let closed = WERE_CLOSED.load(Ordering::Relaxed);
    for number in (0..3).filter(|number| closed & (1 << number) != 0) {
        // It fails if the stream is still closed.
        let _ = fcntl_setfd(stream(number), FdFlags::CLOEXEC);
    }
}

/// Whether standard output and standard error are the same file, in which the order of the messages matters.
pub fn are_one() -> bool {
    const NULL_DEVICE: u64 = 1 << 8 | 3;
    match (fstat(io::stdout()), fstat(io::stderr())) {
        (Ok(out), Ok(errors)) => {
            (out.st_dev, out.st_ino) == (errors.st_dev, errors.st_ino) && out.st_rdev != NULL_DEVICE
        }
        _ => false,
    }
}
