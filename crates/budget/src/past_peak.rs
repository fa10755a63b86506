//! How much a running tool is still expected to take, once it has given memory back.
//!
//! cicc needs most of its memory in the first third of its time, and what follows needs a tenth of it. If its claim kept all until
//! the end, other commands would wait for memory that nobody uses. So a tool that was near its expected peak, and has been far
//! below it for some seconds, is expected to stay there. If it rises again, it is one that comes and goes, and its claim keeps
//! its whole need from then on.

/// How long a tool must have been low, in nanoseconds.
const LOW_FOR: u64 = 3_000_000_000;

/// The memory of one tool, as it was measured so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PastPeak {
    /// What the claim asked for, in KiB.
    asked_kib: u64,
    peak_kib: u64,
    /// Since when it uses less than half of its peak.
    low_since: Option<u64>,
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
    pub fn expect(&mut self, used_kib: u64, now: u64) -> u64 {
        self.peak_kib = self.peak_kib.max(used_kib);
        // A request is half more than was seen after a stop, and a guess may be too high. But before half of it was seen,
        // the peak may be yet to come.
        let has_peaked = self.peak_kib >= self.asked_kib / 2;
        if used_kib > self.peak_kib / 2 || !has_peaked {
            self.low_since = None;
            self.has_risen_again |= self.is_past;
            self.is_past = false;
        } else {
            let since = *self.low_since.get_or_insert(now);
            self.is_past = now.saturating_sub(since) >= LOW_FOR && !self.has_risen_again;
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

    /// What is expected at each second.
    fn expected(asked_mib: u64, used_mib: &[u64]) -> Vec<u64> {
        let mut tool = PastPeak::new(asked_mib * MIB);
        let used = used_mib.iter().zip(1..);
        used.map(|(mib, second)| tool.expect(mib * MIB, second * SECOND) / MIB)
            .collect()
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
}
