//! How much of the machine may be used by default.

use std::thread;

use crate::memory::Meter;

/// The budget as one process sees it. Where processes have different limits, those with a limit
/// of L or less never take more than L together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Slots: how many threads of heavy commands run at a time. At least 1.
    pub slots: u32,
    /// Memory in KiB that all heavy commands together may need.
    pub memory_kib: u64,
    /// The memory that is left to everything else.
    pub reserve: Reserve,
}

/// Memory in KiB that is kept available for everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve(pub u64);

impl BudgetLimits {
    /// The CPUs of the affinity mask and the cgroup's quota; the memory of the machine or the
    /// cgroup, whichever is less, without the reserve.
    pub fn detect() -> Self {
        let slots = thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let total = Meter::new().total_kib();
        let reserve = Reserve::from_total(total);
        Self {
            slots,
            memory_kib: total.saturating_sub(reserve.0),
            reserve,
        }
    }

    /// The same with at least one slot, because a limit of no slots makes no sense.
    pub(crate) fn sane(mut self) -> Self {
        self.slots = self.slots.max(1);
        self
    }
}

impl Reserve {
    /// 512 MiB or a twentieth, whichever is more, but never more than a quarter.
    pub fn from_total(total_kib: u64) -> Self {
        Self((512 * 1024).max(total_kib / 20).min(total_kib / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * 1024;

    #[test]
    fn the_reserve_grows_with_the_machine() {
        assert_eq!(Reserve::from_total(GIB), Reserve(GIB / 4));
        assert_eq!(Reserve::from_total(4 * GIB), Reserve(GIB / 2));
        assert_eq!(Reserve::from_total(100 * GIB), Reserve(5 * GIB));
    }

    #[test]
    fn this_machine_has_something() {
        let limits = BudgetLimits::detect();
        assert!(limits.slots > 0);
        assert!(limits.memory_kib > limits.reserve.0);
    }
}
