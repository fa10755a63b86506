//! The standard streams that this process inherited: which were closed, and whether two are the same.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{Mode, OFlags, fstat, open};

/// The reason for bypassing a call that was started with a closed standard stream.
pub const CLOSED: &str = "a standard stream is closed";
/// The reason for bypassing a call: a tool prints to standard output and standard error, and both are the same file.
pub const MIXED: &str = "messages on two streams that are one";

/// One bit for each of the three streams: whether it was closed when this process started.
static WERE_CLOSED: AtomicU8 = AtomicU8::new(0);

/// Whether one of the streams was closed when this process started.
pub fn any_was_closed() -> bool {
    WERE_CLOSED.load(Ordering::Relaxed) != 0
}

/// Opens something in place of each closed stream, so that no other file gets its number and then the messages. What is
/// opened can be neither read nor written, and a program that this process becomes finds the stream closed. To be called
/// before anything else is opened.
pub fn replace_closed() {
    // The system gives the lowest free number.
    while let Ok(root) = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        && let number @ 0..3 = root.as_raw_fd()
    {
        WERE_CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        // It stays open until this process ends.
        let _ = root.into_raw_fd();
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
