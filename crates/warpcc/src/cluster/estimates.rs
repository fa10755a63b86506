//! Estimates about a cluster, which calls share: how fast the network is, how long commands wait, which tools were uploaded.
//!
//! Estimates only help to decide where a step runs. A lost or wrong estimate costs time, and changes no result.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::Digest;
use warpcc_engine::executor::RemoteEstimate;

/// Inputs of at least this size are taken for tools. Most sources are smaller.
const SMALLEST_TOOL: u64 = 1 << 20;

/// The most tools that are remembered.
const MOST_TOOLS: usize = 64;

/// The age at which speeds are forgotten, so that a cluster that was slow is tried again.
const LONGEST_AGE: Duration = Duration::from_secs(600);

/// The assumption before any measurement. It describes a fast cluster, so that the cluster is tried.
const UNKNOWN: RemoteEstimate = RemoteEstimate {
    waits_ms: 50,
    bytes_per_second: 200_000_000,
    tool_bytes: 0,
};

/// The estimates for one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimates {
    speeds: RemoteEstimate,
    tools: BTreeSet<Digest>,
}

impl Default for Estimates {
    fn default() -> Self {
        Self {
            speeds: UNKNOWN,
            tools: BTreeSet::new(),
        }
    }
}

impl Estimates {
    /// Decodes the bytes of [`Estimates::to_bytes`]. Other bytes give the assumption.
    pub fn from_bytes(bytes: &[u8], now: SystemTime) -> Self {
        let mut estimates = Self::default();
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let mut lines = text.lines();
        let numbers: Vec<u64> = lines
            .next()
            .unwrap_or_default()
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        if let [at, waits_ms, bytes_per_second] = numbers[..] {
            let age = now.duration_since(UNIX_EPOCH + Duration::from_secs(at.min(1 << 40)));
            if age.is_ok_and(|age| age < LONGEST_AGE) {
                estimates.speeds.waits_ms = waits_ms;
                estimates.speeds.bytes_per_second = bytes_per_second.max(1);
            }
        }
        estimates.tools = lines.filter_map(|line| line.parse().ok()).collect();
        estimates
    }

    /// Encodes the estimates for a note.
    pub fn to_bytes(&self, now: SystemTime) -> Vec<u8> {
        let at = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let RemoteEstimate {
            waits_ms,
            bytes_per_second,
            ..
        } = self.speeds;
        let mut text = format!("{at} {waits_ms} {bytes_per_second}\n");
        for tool in self.tools.iter().take(MOST_TOOLS) {
            text.push_str(&format!("{tool}\n"));
        }
        text.into_bytes()
    }

    /// The estimate for a command with this program.
    pub fn estimate(&self, program: &Digest) -> RemoteEstimate {
        let seen = self.tools.contains(program);
        RemoteEstimate {
            tool_bytes: if seen { 0 } else { program.size },
            ..self.speeds
        }
    }

    /// Learns from a command that took the time `whole`: it ran for `busy`, and `timed` bytes were transferred in `moving`.
    pub fn learn(&mut self, whole: Duration, busy: Duration, timed: u64, moving: Duration) {
        let waited = whole.saturating_sub(busy).saturating_sub(moving);
        let waited = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.speeds.waits_ms = towards(self.speeds.waits_ms, waited);
        let micros = u64::try_from(moving.as_micros()).unwrap_or(u64::MAX);
        if let Some(rate) = timed.saturating_mul(1_000_000).checked_div(micros) {
            self.speeds.bytes_per_second = towards(self.speeds.bytes_per_second, rate).max(1);
        }
    }

    /// Notes that the cluster now has these inputs.
    pub fn note_uploaded(&mut self, inputs: impl IntoIterator<Item = Digest>) {
        let tools = inputs
            .into_iter()
            .filter(|digest| digest.size >= SMALLEST_TOOL);
        self.tools.extend(tools);
        while self.tools.len() > MOST_TOOLS {
            self.tools.pop_first();
        }
    }
}

/// The old value, moved a quarter of the way to `new`, so that one unusual command changes little.
fn towards(old: u64, new: u64) -> u64 {
    (old - old / 4).saturating_add(new / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_remembered_for_a_while() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let tool = Digest {
            size: 2 << 20,
            ..Digest::of_bytes(b"a tool")
        };
        let mut estimates = Estimates::default();
        assert_eq!(estimates.estimate(&tool).tool_bytes, 2 << 20);
        let second = Duration::from_secs(1);
        for _ in 0..40 {
            // A megabyte in a second, and a second of waiting.
            estimates.learn(3 * second, second, 1 << 20, second);
        }
        estimates.note_uploaded([tool, Digest::of_bytes(b"small")]);
        let again = Estimates::from_bytes(&estimates.to_bytes(now), now + second);
        assert_eq!(again, estimates);
        let speeds = again.estimate(&tool);
        assert_eq!(speeds.tool_bytes, 0);
        assert!((990..=1000).contains(&speeds.waits_ms), "{speeds:?}");
        assert!(
            (1_000_000..1_100_000).contains(&speeds.bytes_per_second),
            "{speeds:?}"
        );
        let later = Estimates::from_bytes(&estimates.to_bytes(now), now + 2 * LONGEST_AGE);
        assert_eq!(later.estimate(&tool), UNKNOWN);
        assert_eq!(
            Estimates::from_bytes(b"\xff 1 2", now),
            Estimates::default()
        );
    }

    #[test]
    fn small_transfers_do_not_change_the_speed() {
        let mut estimates = Estimates::default();
        estimates.learn(
            Duration::from_millis(450),
            Duration::from_millis(400),
            0,
            Duration::ZERO,
        );
        assert_eq!(estimates, Estimates::default());
    }
}
