//! Notices a step that hangs: for a whole window it had no output, none of its processes used the processor, and none
//! started or ended.
//!
//! Only what can be observed counts. A process that is ready to run counts as active even if others have the processor. A
//! process that waits for a disk (state D) cannot be ended, and nvcc would wait for the same disk. A stopped process (T) was
//! stopped by a person. Each of these restarts the window, and so does a process whose state cannot be read. Time is counted
//! in checks, so a machine that sleeps, or a container that is frozen, adds one check at most.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use warpcc_budget::proc::{self, Stat};

/// The number of checks in a window.
const CHECKS: u32 = 10;

/// Looks at one step at regular intervals.
#[derive(Debug)]
pub struct Watchdog {
    group: u32,
    window: Duration,
    next: Instant,
    still: u32,
    last: Vec<Member>,
}

/// A process of the step, and the processor time that it has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    pid: u32,
    start: u64,
    ticks: u64,
}

impl Watchdog {
    /// A watchdog for the process group `group`, which may be idle for `window`.
    pub fn new(group: Pid, window: Duration) -> Self {
        Self {
            group: group.as_raw_nonzero().get().unsigned_abs(),
            window,
            next: Instant::now() + window / CHECKS,
            still: 0,
            last: Vec::new(),
        }
    }

    /// How long until it looks again.
    pub fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Notes that the step wrote output.
    pub fn moved(&mut self) {
        self.still = 0;
        self.last.clear();
    }

    /// Looks, if it is time to. Returns true if the step has been idle for the whole window.
    pub fn check(&mut self) -> bool {
        if !self.pause().is_zero() {
            return false;
        }
        self.next = Instant::now() + self.window / CHECKS;
        let members = members(self.group, &proc::all());
        let now: Vec<Member> = members
            .iter()
            .map(|(pid, stat)| Member {
                pid: *pid,
                start: stat.start,
                ticks: stat.ticks,
            })
            .collect();
        let moves = now.is_empty() || now != self.last || members.iter().any(may_move);
        self.last = now;
        self.still = if moves { 0 } else { self.still + 1 };
        self.still >= CHECKS
    }

    /// Ends the processes that it last saw: the group, and those that the group started in groups of their own.
    pub fn end(&self) {
        let pid = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
        if let Some(group) = pid(self.group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for member in &self.last {
            let same = proc::stat(member.pid).is_some_and(|stat| stat.start == member.start);
            if let (true, Some(pid)) = (same, pid(member.pid)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The processes of `group`, and their descendants.
fn members(group: u32, all: &[(u32, Stat)]) -> Vec<(u32, Stat)> {
    let mut found: Vec<(u32, Stat)> = Vec::new();
    let of_group = |(_, stat): &&(u32, Stat)| stat.group == group;
    found.extend(all.iter().filter(of_group));
    let mut at = 0;
    while at < found.len() {
        let parent = found[at].0;
        let known: Vec<u32> = found.iter().map(|(pid, _)| *pid).collect();
        let children = all
            .iter()
            .filter(|(pid, stat)| stat.parent == parent && !known.contains(pid));
        found.extend(children);
        at += 1;
    }
    found.sort_by_key(|(pid, _)| *pid);
    found
}

/// Whether any thread is in another state than asleep or ended.
fn may_move((pid, stat): &(u32, Stat)) -> bool {
    let moves = |state: u8| matches!(state, b'R' | b'D' | b'T' | b't');
    moves(stat.state) || (stat.threads > 1 && proc::thread_states(*pid).into_iter().any(moves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_what_it_started_in_other_groups() {
        let stat = |parent, group| Stat {
            state: b'S',
            parent,
            group,
            session: 1,
            ticks: 0,
            threads: 1,
            start: 1,
            is_between: false,
        };
        let all = [
            (1, stat(0, 1)),
            (12, stat(11, 11)),
            (11, stat(10, 11)),
            (10, stat(1, 10)),
            // It is in the group, although its parent has ended.
            (13, stat(1, 10)),
            // A daemon is neither in the group nor a descendant.
            (14, stat(1, 14)),
        ];
        let pids: Vec<u32> = members(10, &all).into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(pids, [10, 11, 12, 13]);
    }
}
