//! The clock that all processes share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot, sleep included: the same for all processes, and cannot be set.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}
