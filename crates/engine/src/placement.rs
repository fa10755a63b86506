//! Where a step would end sooner, here or there: a pure function of what is remembered of the step, this machine and
//! the cluster.

/// This machine, as a step that wants to run finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// Slots that it has.
    pub slots: u64,
    /// Slots that are not used or waited for.
    pub idle: u64,
    /// Milliseconds of work for one slot that come before the step: what is left of what runs, and what waits and is no
    /// less urgent.
    pub ahead_ms: u64,
}

/// An estimate of the other machines, from their work so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct There {
    /// Milliseconds between sending a command and its result, without the command itself and the transfer: the queue
    /// there, and the latency.
    pub waits_ms: u64,
    /// The transfer rate, in bytes per second.
    pub bytes_per_second: u64,
    /// Bytes sent with the step besides its own files: its tool, where the other machines never had it.
    pub tool_bytes: u64,
}

/// The machine that a step is to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Here, when its turn comes.
    Here,
    /// On another machine, now.
    There,
}

/// Chooses for a step that takes `step_ms` on either machine and has `bytes` of its own to transfer.
pub fn choose(step_ms: u64, bytes: u64, here: &Here, there: &There) -> Placement {
    if ends_there(step_ms, bytes, there) < ends_here(step_ms, here) {
        Placement::There
    } else {
        Placement::Here
    }
}

/// Milliseconds until the step has ended here.
fn ends_here(step_ms: u64, here: &Here) -> u64 {
    let waits = match here.idle {
        0 => here.ahead_ms / here.slots.max(1),
        _ => 0,
    };
    waits.saturating_add(step_ms)
}

/// Milliseconds until the result from the other machine has arrived here.
fn ends_there(step_ms: u64, bytes: u64, there: &There) -> u64 {
    let bytes = bytes.saturating_add(there.tool_bytes);
    let moving = bytes.saturating_mul(1000) / there.bytes_per_second.max(1);
    there
        .waits_ms
        .saturating_add(moving)
        .saturating_add(step_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Here = Here {
        slots: 4,
        idle: 0,
        ahead_ms: 8000,
    };

    const FAST: There = There {
        waits_ms: 50,
        bytes_per_second: 100_000_000,
        tool_bytes: 0,
    };

    #[test]
    fn a_free_slot_is_always_sooner() {
        let idle = Here { idle: 1, ..BUSY };
        for step_ms in [0, 100, 100_000] {
            assert_eq!(choose(step_ms, 0, &idle, &FAST), Placement::Here);
        }
    }

    #[test]
    fn waiting_here_is_weighed_against_transfer_and_waiting_there() {
        // Two seconds of queue for each of four slots.
        assert_eq!(choose(1000, 1 << 20, &BUSY, &FAST), Placement::There);
        let slow = There {
            bytes_per_second: 500_000,
            ..FAST
        };
        assert_eq!(choose(1000, 1 << 20, &BUSY, &slow), Placement::Here);
        let full = There {
            waits_ms: 2001,
            ..FAST
        };
        assert_eq!(choose(1000, 0, &BUSY, &full), Placement::Here);
        let short = Here {
            ahead_ms: 160,
            ..BUSY
        };
        assert_eq!(choose(1000, 1 << 20, &short, &FAST), Placement::Here);
    }

    #[test]
    fn a_tool_that_was_never_sent_counts() {
        let first = There {
            tool_bytes: 300_000_000,
            ..FAST
        };
        assert_eq!(choose(1000, 0, &BUSY, &first), Placement::Here);
        let long = Here {
            ahead_ms: 80_000,
            ..BUSY
        };
        assert_eq!(choose(1000, 0, &long, &first), Placement::There);
    }

    #[test]
    fn no_numbers_make_it_fail() {
        let nothing = Here {
            slots: 0,
            idle: 0,
            ahead_ms: u64::MAX,
        };
        let never = There {
            waits_ms: u64::MAX,
            bytes_per_second: 0,
            tool_bytes: u64::MAX,
        };
        assert_eq!(
            choose(u64::MAX, u64::MAX, &nothing, &never),
            Placement::Here
        );
    }
}
