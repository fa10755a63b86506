//! Decides where a step would end sooner, on this machine or on the cluster: a pure function of the recorded costs of the
//! step, and the load of this machine and of the cluster.

/// The load of this machine when a step wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalLoad {
    /// The number of its slots.
    pub slots: u64,
    /// Slots that are not used or waited for.
    pub idle: u64,
    /// Milliseconds of work for one slot that come before the step: the rest of the running tasks, and the waiting tasks
    /// with the same or a higher priority.
    pub ahead_ms: u64,
}

/// Estimates about the cluster, from earlier steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteEstimate {
    /// Milliseconds between sending a command and its result, without the command's own time and the transfer of its bytes:
    /// the queue there, and the latency.
    pub waits_ms: u64,
    /// The transfer rate, in bytes per second.
    pub bytes_per_second: u64,
    /// Bytes of the step's tool, if the other machines never had it.
    pub tool_bytes: u64,
}

/// The machine that a step is to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On this machine, as soon as it has a slot.
    Local,
    /// On the cluster, now.
    Remote,
}

/// Chooses for a step that takes `step_ms` on either machine and has `bytes` of its own to move.
pub fn choose(step_ms: u64, bytes: u64, load: &LocalLoad, estimate: &RemoteEstimate) -> Placement {
    if remote_end(step_ms, bytes, estimate) < local_end(step_ms, load) {
        Placement::Remote
    } else {
        Placement::Local
    }
}

/// Milliseconds until the step ends on this machine.
fn local_end(step_ms: u64, load: &LocalLoad) -> u64 {
    let waits = match load.idle {
        0 => load.ahead_ms / load.slots.max(1),
        _ => 0,
    };
    waits.saturating_add(step_ms)
}

/// Milliseconds until the result from the cluster has arrived here.
fn remote_end(step_ms: u64, bytes: u64, estimate: &RemoteEstimate) -> u64 {
    let bytes = bytes.saturating_add(estimate.tool_bytes);
    let moving = bytes.saturating_mul(1000) / estimate.bytes_per_second.max(1);
    estimate
        .waits_ms
        .saturating_add(moving)
        .saturating_add(step_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: LocalLoad = LocalLoad {
        slots: 4,
        idle: 0,
        ahead_ms: 8000,
    };

    const FAST: RemoteEstimate = RemoteEstimate {
        waits_ms: 50,
        bytes_per_second: 100_000_000,
        tool_bytes: 0,
    };

    #[test]
    fn a_free_slot_is_always_sooner() {
        let idle = LocalLoad { idle: 1, ..BUSY };
        for step_ms in [0, 100, 100_000] {
            assert_eq!(choose(step_ms, 0, &idle, &FAST), Placement::Local);
        }
    }

    #[test]
    fn waiting_here_is_weighed_against_transfer_and_waiting_there() {
        // Two seconds of queue for each of four slots.
        assert_eq!(choose(1000, 1 << 20, &BUSY, &FAST), Placement::Remote);
        let slow = RemoteEstimate {
            bytes_per_second: 500_000,
            ..FAST
        };
        assert_eq!(choose(1000, 1 << 20, &BUSY, &slow), Placement::Local);
        let full = RemoteEstimate {
            waits_ms: 2001,
            ..FAST
        };
        assert_eq!(choose(1000, 0, &BUSY, &full), Placement::Local);
        let short = LocalLoad {
            ahead_ms: 160,
            ..BUSY
        };
        assert_eq!(choose(1000, 1 << 20, &short, &FAST), Placement::Local);
    }

    #[test]
    fn a_tool_that_was_never_sent_counts() {
        let first = RemoteEstimate {
            tool_bytes: 300_000_000,
            ..FAST
        };
        assert_eq!(choose(1000, 0, &BUSY, &first), Placement::Local);
        let long = LocalLoad {
            ahead_ms: 80_000,
            ..BUSY
        };
        assert_eq!(choose(1000, 0, &long, &first), Placement::Remote);
    }

    #[test]
    fn no_numbers_make_it_fail() {
        let nothing = LocalLoad {
            slots: 0,
            idle: 0,
            ahead_ms: u64::MAX,
        };
        let never = RemoteEstimate {
            waits_ms: u64::MAX,
            bytes_per_second: 0,
            tool_bytes: u64::MAX,
        };
        assert_eq!(
            choose(u64::MAX, u64::MAX, &nothing, &never),
            Placement::Local
        );
    }
}
