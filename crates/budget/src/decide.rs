//! Decides which claim is granted next, which waiters watch, and which claim is stopped. These are functions of the
//! table alone: they use no files, processes or clocks.
//!
//! The order: first claims that have been passed over for too long, then builds with fewer running slots before builds
//! with more, then the longest expected way to the end, then the claim that came first.
//!
//! The limits: processes may have different ones. Every limit L that occurs is a level, and the claims whose own limit
//! is L or less take at most L together. So a build that was told to use four slots uses four, whether or not one with
//! sixteen runs next to it, and neither starves. An empty level takes one claim of any size: one task alone always
//! runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::record::{Record, SeatState};

/// How long smaller claims may pass one that does not fit.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The most builds whose waiters watch: with more, only more processes would wake up.
const WATCHED_BUILDS: usize = 8;

/// The machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// KiB that can be had now.
    pub available_kib: u64,
    /// KiB of it that must stay.
    pub reserve_kib: u64,
}

/// A decision: what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// The seat to grant.
    pub grant: Option<usize>,
    /// The seat that is first in the order and does not fit, although a slot is free. From now on it is passed over,
    /// for a limited time.
    pub refused: Option<usize>,
    /// No slot is free, so no claim can be granted.
    pub full: bool,
}

/// Decides one step. The caller grants the claim and calls this again.
///
/// `now` is a time of the records' clock. Without `memory`, only the needs in the claims count.
pub fn choose(records: &[Record], now: u64, memory: Option<Memory>) -> Decision {
    let load = Load::measure(records, memory);
    if load.is_full() || load.alone {
        return Decision {
            full: true,
            ..Decision::default()
        };
    }
    let queue = || {
        let waiting = records.iter().enumerate().filter(|(_, r)| r.queues());
        waiting.map(|(seat, r)| (Rank::new(r, now, load.slots_of(r.build)), seat))
    };
    // Most of the time the first one fits, and the others, perhaps a thousand, need not be sorted.
    let Some((_, first)) = queue().min() else {
        return Decision::default();
    };
    if load.fit(&records[first]).is_ok() {
        return Decision {
            grant: Some(first),
            ..Decision::default()
        };
    }
    let mut order: Vec<(Rank, usize)> = queue().collect();
    order.sort_unstable();
    let mut choice = Decision::default();
    let mut blocked = Blocked::default();
    for (place, &(rank, seat)) in order.iter().enumerate() {
        let record = &records[seat];
        match load.fit(record) {
            Ok(()) if !blocked.holds_back(record) => {
                choice.grant = Some(seat);
                break;
            }
            Ok(()) => {}
            Err(by) => {
                if place == 0 && record.refused == 0 {
                    choice.refused = Some(seat);
                }
                if rank.starving != NOT_STARVING {
                    blocked.add(by);
                }
            }
        }
    }
    choice
}

/// No claim has waited this long.
const NOT_STARVING: u64 = u64::MAX;

/// Where a waiter stands; the least is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    starving: u64,
    slots_of_build: u64,
    priority: Reverse<u64>,
    arrived: u64,
    ticket: u64,
}

impl Rank {
    fn new(record: &Record, now: u64, slots_of_build: u64) -> Self {
        let passed_over = now.saturating_sub(record.refused);
        let starving = record.refused > 0 && u128::from(passed_over) > PATIENCE.as_nanos();
        Self {
            starving: if starving {
                record.refused
            } else {
                NOT_STARVING
            },
            slots_of_build,
            priority: Reverse(record.priority_ms),
            arrived: record.arrived,
            ticket: record.ticket,
        }
    }
}

/// The levels that are too full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TooFull {
    slots: Option<u32>,
    memory: Option<u64>,
    machine: bool,
}

/// The slots and memory that claims keep free for themselves after waiting too long.
#[derive(Debug, Default)]
struct Blocked {
    slots: Option<u32>,
    memory: Option<u64>,
    machine: bool,
}

impl Blocked {
    fn add(&mut self, by: TooFull) {
        self.slots = self.slots.max(by.slots);
        self.memory = self.memory.max(by.memory);
        self.machine |= by.machine;
    }

    /// Whether `record` would take from a level in which a claim has waited too long. A claim that counts only in other
    /// levels takes nothing from it.
    fn holds_back(&self, record: &Record) -> bool {
        self.machine
            || self.slots.is_some_and(|level| record.slots_limit <= level)
            || self
                .memory
                .is_some_and(|level| record.memory_limit_kib <= level)
    }
}

/// The sum of all running claims.
#[derive(Debug)]
struct Load {
    /// By limit: slots in use of claims with this limit or less.
    slots: BTreeMap<u32, u64>,
    /// By limit: KiB expected of claims with this limit or less.
    memory: BTreeMap<u64, u64>,
    builds: BTreeMap<u64, u64>,
    /// KiB that the running claims are still expected to take.
    growth: u64,
    running: usize,
    alone: bool,
    machine: Option<Memory>,
}

impl Load {
    fn measure(records: &[Record], machine: Option<Memory>) -> Self {
        let mut load = Self {
            slots: BTreeMap::new(),
            memory: BTreeMap::new(),
            builds: BTreeMap::new(),
            growth: 0,
            running: 0,
            alone: false,
            machine,
        };
        for record in records.iter().filter(|r| r.state != SeatState::Free) {
            load.slots.entry(record.slots_limit).or_default();
            load.memory.entry(record.memory_limit_kib).or_default();
        }
        for record in records
            .iter()
            .filter(|r| r.state == SeatState::Running && !r.flags.nested)
        {
            if record.counts() {
                load.running += 1;
                load.alone |= record.flags.alone;
                let slots = u64::from(record.slots);
                let growth = record.need_kib.saturating_sub(record.now_kib);
                load.growth = load.growth.saturating_add(growth);
                add(load.builds.entry(record.build).or_default(), slots);
                for (_, sum) in load.slots.range_mut(record.slots_limit..) {
                    add(sum, slots);
                }
            }
            // A stopped command takes no CPU, but keeps its memory.
            let memory = if record.flags.suspended {
                record.now_kib
            } else {
                record.need_kib.max(record.now_kib)
            };
            for (_, sum) in load.memory.range_mut(record.memory_limit_kib..) {
                add(sum, memory);
            }
        }
        load
    }

    /// Whether the highest level has no slot left for anybody.
    fn is_full(&self) -> bool {
        self.slots
            .last_key_value()
            .is_none_or(|(&limit, &used)| used >= u64::from(limit).max(1))
    }

    fn slots_of(&self, build: u64) -> u64 {
        self.builds.get(&build).copied().unwrap_or(0)
    }

    fn fit(&self, record: &Record) -> Result<(), TooFull> {
        if self.running == 0 {
            return Ok(());
        }
        if record.flags.alone {
            return Err(TooFull {
                machine: true,
                ..TooFull::default()
            });
        }
        let need = u64::from(record.slots);
        let slots = self.slots.range(record.slots_limit..);
        let slots = slots.filter(|(limit, used)| over(**used, need, u64::from(**limit)));
        let memory = self.memory.range(record.memory_limit_kib..);
        let memory = memory.filter(|(limit, used)| over(**used, record.need_kib, **limit));
        let machine = self.machine.is_some_and(|m| {
            let more = self.growth.saturating_add(record.need_kib);
            m.available_kib < more.saturating_add(m.reserve_kib)
        });
        let by = TooFull {
            slots: slots.map(|(&limit, _)| limit).max(),
            memory: memory.map(|(&limit, _)| limit).max(),
            machine,
        };
        if by == TooFull::default() {
            Ok(())
        } else {
            Err(by)
        }
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Whether a level of `limit` with `used` has no room for `need`. An empty one always has.
fn over(used: u64, need: u64, limit: u64) -> bool {
    used > 0 && used.saturating_add(need) > limit
}

/// The seats whose owners watch the other owners: the first two waiters of a build, in different processes, for up to
/// eight builds. So if a process or a whole build ends while claims wait, another one notices.
pub fn watchers(records: &[Record]) -> Vec<usize> {
    let mut builds: BTreeMap<u64, [Option<usize>; 2]> = BTreeMap::new();
    let rank = |seat: usize| {
        let r: &Record = &records[seat];
        (Reverse(r.priority_ms), r.arrived, r.ticket)
    };
    for (seat, record) in records.iter().enumerate().filter(|(_, r)| r.queues()) {
        let best = builds.entry(record.build).or_default();
        let before = |other: Option<usize>| other.is_none_or(|o| rank(seat) < rank(o));
        let same = |other: Option<usize>| other.is_some_and(|o| records[o].pid == record.pid);
        if before(best[0]) {
            if !same(best[0]) {
                best[1] = best[0];
            }
            best[0] = Some(seat);
        } else if before(best[1]) && !same(best[0]) {
            best[1] = Some(seat);
        }
    }
    builds
        .into_values()
        .take(WATCHED_BUILDS)
        .flatten()
        .flatten()
        .collect()
}

/// The waiters that a free slot does not help, once no claim is granted: they wait for memory, their own or that of a
/// claim that has waited too long for its memory.
pub fn short_of_memory(records: &[Record], memory: Option<Memory>) -> Vec<usize> {
    let load = Load::measure(records, memory);
    let short = |(_, record): &(usize, &Record)| {
        record.queues() && load.fit(record).err().is_none_or(|by| by.slots.is_none())
    };
    let seats = records.iter().enumerate();
    seats.filter(short).map(|(seat, _)| seat).collect()
}

/// The claim to stop when memory runs out: the youngest of those that can be asked, unless it is
/// the only one that runs. `domain` limits it to claims in one memory-limited cgroup, 0 does not.
pub fn youngest(records: &[Record], domain: u64) -> Option<usize> {
    youngest_of(records, |r| domain == 0 || r.domain == domain)
}

/// The claim to stop when the claims with some memory limit were measured to use more than it together, even if the
/// machine has more memory. It is the youngest of them, unless it is the only one.
pub fn over_limit(records: &[Record]) -> Option<usize> {
    let mut levels = BTreeMap::new();
    let holds = |r: &&Record| r.state == SeatState::Running && !r.flags.nested;
    for record in records.iter().filter(holds) {
        levels.entry(record.memory_limit_kib).or_insert(0u64);
    }
    for record in records.iter().filter(holds) {
        for (_, sum) in levels.range_mut(record.memory_limit_kib..) {
            add(sum, record.now_kib);
        }
    }
    let over = levels.into_iter().filter(|(limit, sum)| sum > limit);
    over.map(|(limit, _)| limit)
        .find_map(|limit| youngest_of(records, |r| r.memory_limit_kib <= limit))
}

fn youngest_of(records: &[Record], concerned: impl Fn(&Record) -> bool) -> Option<usize> {
    let mut running = 0;
    let mut youngest = None;
    for (seat, record) in records.iter().enumerate() {
        if !record.counts() || !concerned(record) {
            continue;
        }
        running += 1;
        let later = |other: usize| record.started > records[other].started;
        let can = !record.flags.kept && !record.flags.evict && record.kind.makes_room();
        if can && youngest.is_none_or(later) {
            youngest = Some(seat);
        }
    }
    youngest.filter(|_| running > 1)
}
