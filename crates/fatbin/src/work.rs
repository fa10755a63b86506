//! Counts the work of reading a file, so that tests can check that it is linear in the file's size.
//!
//! Times would be less reliable. It counts only in builds with debug assertions.

use std::sync::atomic::{AtomicU64, Ordering};

static DONE: AtomicU64 = AtomicU64::new(0);

/// Adds work: a number of bytes of a name or a section, or of rows of a table.
pub(crate) fn count(units: usize) {
    if cfg!(debug_assertions) {
        DONE.fetch_add(units as u64, Ordering::Relaxed);
    }
}

/// What was counted in this process so far.
#[doc(hidden)]
pub fn work_done() -> u64 {
    DONE.load(Ordering::Relaxed)
}
