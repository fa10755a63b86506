//! Brings the table up to date after every change: removes dead claims, grants those that fit, and chooses the
//! watchers. Runs under the board's lock.

use crate::decide::{self, Decision, Memory};
use crate::proc;
use crate::record::{Record, SeatState};
use crate::seat;
use crate::shared::Shared;
use crate::table::SeatTable;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckLevel {
    /// Believe the table: an arrival, a release.
    Quick,
    /// Check that the owners are alive: one died, or the last check was long ago.
    Check,
}

/// The number of waiters that one check examines. The next check continues after them.
const ROUND: usize = 64;
/// How long a claim must have waited before stopped owners are looked for.
const STOPPED_AFTER: u64 = 1_000_000_000;

/// Whether a program that replaced the claim's process has ended. The seat's lock does not show that, because processes
/// that the program left running (a compiler wrapper's server) hold the lock too.
fn is_over(record: &Record) -> bool {
    record.flags.kept
        && proc::stat(record.pid)
            .is_none_or(|found| found.start != record.pid_start || found.is_over())
}

impl Shared {
    /// Brings the table up to date at time `now`.
    pub(crate) fn reconcile(&self, table: &mut SeatTable, level: CheckLevel, now: u64) {
        let before = owners(table);
        if level == CheckLevel::Check {
            self.free_dead_running(table);
            self.free_dead_waiting(table);
            self.look_for_stopped(table, now);
            wake_again(table, now);
            table.header.checked = now;
        }
        self.grant(table, now);
        // Watching one process too many does no harm, so releases do not concern the watchers.
        let mut after = owners(table).into_iter();
        let news = after.any(|owner| !before.contains(&owner));
        self.appoint_watchers(table, news);
    }

    fn is_held(&self, seat: usize) -> bool {
        seat::is_held(&self.folder, seat)
    }

    fn free_dead_running(&self, table: &mut SeatTable) {
        for seat in seats(table, |r| r.state == SeatState::Running) {
            if !self.is_held(seat) || is_over(&table.records()[seat]) {
                table.free(seat);
            }
        }
    }

    fn free_dead_waiting(&self, table: &mut SeatTable) {
        let mut waiting = seats(table, |r| r.state == SeatState::Waiting);
        if waiting.is_empty() {
            return;
        }
        let first = waiting.partition_point(|&seat| (seat as u64) <= table.header.cursor);
        let first = first % waiting.len();
        waiting.rotate_left(first);
        for seat in waiting.into_iter().take(ROUND) {
            table.header.cursor = seat as u64;
            if !self.is_held(seat) {
                table.free(seat);
            }
        }
    }

    /// Whether a process and its tool do nothing because they were stopped.
    fn is_stopped(record: &Record) -> bool {
        let Some(owner) = proc::stat(record.pid).filter(|s| s.start == record.pid_start) else {
            // The number is of another namespace, or the process has ended, which its lock shows.
            return false;
        };
        owner.is_stopped()
            && (record.tool == 0
                || proc::stat(record.tool).is_none_or(|tool| tool.is_stopped() || tool.is_over()))
    }

    fn look_for_stopped(&self, table: &mut SeatTable, now: u64) {
        let waiting = seats(table, |r| r.state == SeatState::Waiting);
        let long =
            |&seat: &usize| now.saturating_sub(table.records()[seat].arrived) > STOPPED_AFTER;
        if !waiting.iter().any(long) {
            return;
        }
        for seat in seats(table, |r| r.state == SeatState::Running) {
            let record = table.records()[seat];
            let stopped = Self::is_stopped(&record);
            if stopped != record.flags.suspended {
                table.change(seat).flags.suspended = stopped;
            }
        }
    }

    fn grant(&self, table: &mut SeatTable, now: u64) {
        let mut memory = None;
        let mut unpaused = false;
        loop {
            if !table
                .records()
                .iter()
                .any(|r| r.state == SeatState::Waiting)
            {
                return;
            }
            let memory = *memory.get_or_insert_with(|| self.memory());
            let Decision {
                grant,
                refused,
                full,
            } = decide::choose(table.records(), now, Some(memory));
            if let Some(seat) = refused {
                table.change(seat).refused = now.max(1);
            }
            let Some(seat) = grant else {
                if !full {
                    note_short_of_memory(table, memory, now);
                }
                // Perhaps all waiters that are left were stopped when they were last examined.
                if full || unpaused || !self.unpause(table) {
                    return;
                }
                unpaused = true;
                continue;
            };
            let record = table.records()[seat];
            let own = record.pid == self.me.pid && record.pid_start == self.me.start;
            if !own && !self.is_held(seat) {
                table.free(seat);
            } else if !own && Self::is_stopped(&record) {
                table.change(seat).flags.paused = true;
            } else {
                let record = table.change(seat);
                record.state = SeatState::Running;
                record.started = now.max(1);
                record.flags.watch = false;
                table.wake(seat);
            }
        }
    }

    /// Puts waiters back into the queue that were stopped and no longer are.
    fn unpause(&self, table: &mut SeatTable) -> bool {
        let mut any = false;
        let paused = seats(table, |r| r.state == SeatState::Waiting && r.flags.paused);
        for seat in paused.into_iter().take(ROUND) {
            if !Self::is_stopped(&table.records()[seat]) {
                table.change(seat).flags.paused = false;
                any = true;
            }
        }
        any
    }

    /// Chooses the watchers, and wakes them if there is something new to watch.
    fn appoint_watchers(&self, table: &mut SeatTable, new_owners: bool) {
        let (watchers, news) = loop {
            let watchers = decide::watchers(table.records());
            let new = |&&seat: &&usize| !table.records()[seat].flags.watch;
            let new: Vec<usize> = watchers.iter().filter(new).copied().collect();
            let dead: Vec<usize> = new.iter().copied().filter(|&s| !self.is_held(s)).collect();
            if dead.is_empty() {
                break (watchers, !new.is_empty());
            }
            for seat in dead {
                table.free(seat);
            }
        };
        for seat in seats(table, |r| r.flags.watch) {
            if !watchers.contains(&seat) {
                table.change(seat).flags.watch = false;
            }
        }
        for seat in watchers {
            if !table.records()[seat].flags.watch {
                table.change(seat).flags.watch = true;
            }
            if new_owners || news {
                table.wake(seat);
            }
        }
    }
}

/// Notes that waiters for whom a slot is free wait for memory.
fn note_short_of_memory(table: &mut SeatTable, memory: Memory, now: u64) {
    for seat in decide::short_of_memory(table.records(), Some(memory)) {
        if table.records()[seat].lacked == 0 {
            table.change(seat).lacked = now.max(1);
        }
    }
}

/// Wakes the owners of new grants once more: the process that granted them may have been killed before it woke them.
/// Most have closed their socket already, so this costs almost nothing.
fn wake_again(table: &mut SeatTable, now: u64) {
    let lately = |r: &Record| {
        let since = now.saturating_sub(r.started);
        r.state == SeatState::Running && r.tool == 0 && (LATELY.0..LATELY.1).contains(&since)
    };
    for seat in seats(table, lately) {
        table.wake(seat);
    }
}

/// The age of such grants, in nanoseconds. Before the first, the owner may still be waking up. After the second, it has
/// woken up by itself.
const LATELY: (u64, u64) = (20_000_000, 5_000_000_000);

/// The processes that watchers have to watch.
fn owners(table: &SeatTable) -> Vec<(u32, u64)> {
    let records = table.records().iter();
    let running = records.filter(|r| r.state == SeatState::Running);
    running.map(|r| (r.pid, r.pid_start)).collect()
}

fn seats(table: &SeatTable, which: impl Fn(&Record) -> bool) -> Vec<usize> {
    let records = table.records().iter().enumerate();
    records
        .filter(|(_, r)| which(r))
        .map(|(seat, _)| seat)
        .collect()
}
