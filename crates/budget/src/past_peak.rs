//! How much a running tool is still expected to take, once it has given memory back.
//!
//! cicc needs most of its memory in the first third of its time, and what follows needs a tenth of it. If its claim kept all until
//! the end, other commands would wait for memory that nobody uses. So a tool that was near its expected peak, and has been far
//! below it for some seconds of its work, is expected to stay there. If it rises again, it is one that comes and goes, and its claim
//! keeps its whole need from then on.
//!
//! Only a tool that works shows that it needs less. One that is stopped, or waits for a processor, a process that is not seen any
//! more, and the time in which the machine slept, show nothing. Neither does memory that the kernel has moved to swap: the tool has
//! not given it back.

use crate::proc::TreeUse;

/// How long a tool must have been low, in nanoseconds, both on the clock and of its processor time.
const LOW_FOR: u64 = 3_000_000_000;

/// The memory of one tool, as it was measured so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PastPeak {
    /// What the claim asked for, in KiB.
    asked_kib: u64,
    peak_kib: u64,
    /// Since when it uses less than half of its peak: on the clock, and of its processor time.
    low_since: Option<(u64, u64)>,
    is_past: bool,
    has_risen_again: bool,
}

impl PastPeak {
    /// A tool that was just started.
    pub fn new(asked_kib: u64) -> Self {
        Self {
            asked_kib,
            ..Self::default()
        }
    }

    /// Notes what the tool uses at the time `now`, in nanoseconds. Gives what is expected of it from now on, in KiB.
    pub fn expect(&mut self, used: TreeUse, now: u64) -> u64 {
        let used_kib = used.resident_kib.saturating_add(used.swapped_kib);
        self.peak_kib = self.peak_kib.max(used_kib);
        // A request is half more than was seen after a stop, and a guess may be too high. But before half of it was seen,
        // the peak may be yet to come.
        let has_peaked = self.peak_kib >= self.asked_kib / 2;
        if used_kib > self.peak_kib / 2 || !has_peaked {
            self.low_since = None;
            self.has_risen_again |= self.is_past;
            self.is_past = false;
        } else {
            let (since, cpu) = *self.low_since.get_or_insert((now, used.cpu));
            let worked = used.cpu.saturating_sub(cpu);
            let low_for = now.saturating_sub(since).min(worked);
            self.is_past = low_for >= LOW_FOR && !self.has_risen_again;
        }
        match self.is_past {
            true => used_kib.saturating_add(used_kib / 2).min(self.asked_kib),
            false => self.asked_kib,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MIB: u64 = 1024;

    /// What is expected at each second of a tool that works all the time.
    fn expected(asked_mib: u64, used_mib: &[u64]) -> Vec<u64> {
        let mut tool = PastPeak::new(asked_mib * MIB);
        let used = used_mib.iter().zip(1..);
        used.map(|(mib, second)| tool.expect(resident(*mib, second), second * SECOND) / MIB)
            .collect()
    }

    fn resident(mib: u64, cpu_seconds: u64) -> TreeUse {
        TreeUse {
            resident_kib: mib * MIB,
            swapped_kib: 0,
            cpu: cpu_seconds * SECOND,
        }
    }

    /// A tool of 4000 MiB that has used all of them, and 100 from second 2 on.
    fn fallen() -> PastPeak {
        let mut tool = PastPeak::new(4000 * MIB);
        tool.expect(resident(4000, 1), SECOND);
        tool.expect(resident(100, 2), 2 * SECOND);
        tool
    }

    #[test]
    fn what_stays_low_is_expected_to_stay_low() {
        let used = [100, 3000, 3600, 800, 600, 400, 400, 400];
        let all = [4000, 4000, 4000, 4000, 4000, 4000, 600, 600];
        assert_eq!(expected(4000, &used), all);
    }

    #[test]
    fn before_the_peak_nothing_is_given_back() {
        let used = [100, 300, 100, 100, 100, 100, 100, 100];
        assert_eq!(expected(4000, &used), [4000; 8]);
    }

    #[test]
    fn a_tool_that_comes_and_goes_keeps_all() {
        let used = [4000, 400, 400, 400, 400, 2400, 400, 400, 400, 400, 400];
        let all = [
            4000, 4000, 4000, 4000, 600, 4000, 4000, 4000, 4000, 4000, 4000,
        ];
        assert_eq!(expected(4000, &used), all);
    }

    #[test]
    fn a_short_fall_is_none() {
        assert_eq!(expected(1000, &[900, 100, 900, 100, 100]), [1000; 5]);
    }

    #[test]
    fn after_a_stop_half_more_was_asked_for() {
        assert_eq!(
            expected(5400, &[3600, 500, 500, 500, 500]).last(),
            Some(&750)
        );
    }

    #[test]
    fn a_tool_that_does_not_work_keeps_all() {
        // Stopped, or the machine slept.
        let mut tool = fallen();
        assert_eq!(tool.expect(resident(100, 2), 3600 * SECOND), 4000 * MIB);
        // It has gone on for a second.
        assert_eq!(tool.expect(resident(100, 3), 3601 * SECOND), 4000 * MIB);
        assert_eq!(tool.expect(resident(100, 5), 3603 * SECOND), 150 * MIB);
        // A part of it was left by its parent, and is not seen any more.
        assert_eq!(fallen().expect(resident(100, 1), 9 * SECOND), 4000 * MIB);
        // Eight threads for half a second.
        let busy = resident(100, 6);
        assert_eq!(fallen().expect(busy, 2 * SECOND + SECOND / 2), 4000 * MIB);
    }

    #[test]
    fn what_was_swapped_was_not_given_back() {
        let mut tool = fallen();
        let swapped = TreeUse {
            swapped_kib: 3000 * MIB,
            ..resident(100, 9)
        };
        assert_eq!(tool.expect(swapped, 9 * SECOND), 4000 * MIB);
        let mut tool = fallen();
        let swapped = TreeUse {
            swapped_kib: 500 * MIB,
            ..resident(100, 9)
        };
        assert_eq!(tool.expect(swapped, 9 * SECOND), 900 * MIB);
    }
}
