//! Counts what reading a file costs, so that tests can see that it grows as the file does.
//!
//! Time would tell the same less surely. Only builds with debug assertions count.

use std::sync::atomic::{AtomicU64, Ordering};

static DONE: AtomicU64 = AtomicU64::new(0);

/// Something was looked at: so many bytes of a name or a section, or so many rows of a table.
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
