//! The clock that all processes share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot, sleep included: the same for all processes, and cannot be set.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

/// Whether `time` is less than `span` before `now`. A time in the future is not: a process of another time namespace wrote it, or
/// one before the machine was started again.
pub fn is_within(span: u64, time: u64, now: u64) -> bool {
    now.checked_sub(time).is_some_and(|since| since < span)
}
