//! A process that runs tools measures them regularly, and checks whether memory gets short or a limit is exceeded. Then
//! the youngest claim is stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::board::Board;
use crate::clock::{is_within, now};
use crate::decide;
use crate::file::LockTimeout;
use crate::memory::Reading;
use crate::own::Own;
use crate::proc;
use crate::record::{Header, Record, SeatState};
use crate::shared::Shared;
use crate::table::SeatTable;

/// How often to look when there is plenty.
const CALM: Duration = Duration::from_millis(250);
/// How often when less than twice the reserve is left.
const ALERT: Duration = Duration::from_millis(25);
/// If everything waits for memory for this share of the time, in percent, twice the reserve is too little: the kernel
/// is busy freeing memory, and `MemAvailable` is only an estimate of what it can free.
const STALLED: f32 = 10.0;
/// If an owner has not stopped its tool after this time, in nanoseconds, the next owner is asked.
const REACTION: u64 = 500_000_000;
/// The time after a stop in which no other tool is stopped, in nanoseconds, unless memory still falls.
const DAMPING: u64 = 1_000_000_000;
/// A change of memory in KiB that is written to the table.
const WORTH_TELLING: u64 = 8 * 1024;

/// Measures and watches for one process. [`Pressure::tick`] is to be called from one thread for as
/// long as claims are held.
#[derive(Debug)]
pub struct Pressure {
    board: Board,
    last: Option<(Instant, u64)>,
    ticks: u64,
}

/// The result of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// The claims of this process whose tools are to be stopped now. A claim is named in every tick until it was
    /// requeued or given back, because its tool may be started only after the first tick.
    pub stop: Vec<Stop>,
    /// When to call again.
    pub next: Duration,
}

/// A claim whose tool is to be ended; its holder then calls [`crate::Claim::requeue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// The number from [`crate::ClaimRequest::tag`].
    pub tag: u64,
    /// The tool's process, 0 if it was not started yet. The tool is ended by this number, not by the tag alone. So a
    /// tool that was started again meanwhile is not ended.
    pub tool: u32,
}

impl Board {
    /// The watch over this process's claims.
    pub fn pressure(&self) -> Pressure {
        Pressure {
            board: self.clone(),
            last: None,
            ticks: 0,
        }
    }
}

impl Pressure {
    /// Measures this process's tools, writes the figures to the board, and finds out which tools are to be stopped.
    pub fn tick(&mut self) -> Tick {
        let boards = self.board.0.own();
        let mut owns = boards.iter().flat_map(|(_, own)| own);
        if !owns.any(|o| o.record().state == SeatState::Running) {
            self.last = None;
            return Tick {
                stop: Vec::new(),
                next: CALM,
            };
        }
        self.ticks = self.ticks.wrapping_add(1);
        let reading = self.board.0.meter().read();
        let next = self.pace(reading.available_kib, self.board.0.limits.reserve.0);
        let stop = boards
            .iter()
            .flat_map(|(shared, own)| self.tick_on(shared, own, &reading))
            .map(|own| Stop {
                tag: own.tag,
                tool: own.tool.load(Ordering::SeqCst),
            })
            .collect();
        Tick { stop, next }
    }

    /// The claims of `own`, which are on the board `shared`, that are to be stopped.
    fn tick_on(&self, shared: &Shared, own: &[Arc<Own>], reading: &Reading) -> Vec<Arc<Own>> {
        let (kept, over_limit) = self.look_around(shared, own);
        let news: Vec<(&Arc<Own>, Option<Measurement>)> =
            own.iter().map(|o| (o, measure(o))).collect();
        let memory = Shortage::new(reading, self.board.0.limits.reserve.0);
        let short = memory.is_short();
        let flagged = |o: &Arc<Own>| {
            shared.file.peek_seat(o.seat).map_or(true, |r| {
                r.ticket != o.ticket || r.flags.evict || r.flags.suspended
            })
        };
        let mut stop = Vec::new();
        let anything = short
            || over_limit
            || !kept.is_empty()
            || news.iter().any(|(o, new)| new.is_some() || flagged(o));
        if !anything {
            return stop;
        }
        let domain = if reading.by_cgroup {
            shared.domain()
        } else {
            0
        };
        // A process that cannot use the board any more learns that at the next claim.
        let _ = shared.transact(LockTimeout::Soon, |table| {
            let now = now();
            stop.clear();
            for (seat, ticket, kib) in &kept {
                if table.claim(*seat, *ticket).is_some() {
                    note(table.change(*seat), *kib);
                }
            }
            for (own, new) in &news {
                write_down(own, table, *new);
            }
            let pressed = || evict(table.records(), &table.header, now, memory, domain);
            if let Some(seat) = short.then(pressed).flatten() {
                mark(table, seat, now);
                table.header.evicted = now;
                table.header.evicted_available = reading.available_kib;
            } else if let Some(seat) = evict_over_limit(table.records(), now) {
                mark(table, seat, now);
            }
            for own in own {
                if table
                    .claim(own.seat, own.ticket)
                    .is_some_and(|r| r.flags.evict)
                {
                    // Under the lock, as it is unset when the claim is asked for again.
                    own.stop.store(true, Ordering::SeqCst);
                    stop.push(Arc::clone(own));
                }
            }
        });
        stop
    }

    /// The faster the available memory falls, the sooner the next look. There are at least four looks before the
    /// reserve is reached.
    fn pace(&mut self, available: u64, reserve: u64) -> Duration {
        let last = self.last.replace((Instant::now(), available));
        if available < reserve.saturating_mul(2) {
            return ALERT;
        }
        let Some((when, before)) = last else {
            return CALM;
        };
        let fallen = before.saturating_sub(available);
        if fallen == 0 {
            return CALM;
        }
        let left = (available - reserve) as f64 / fallen as f64 * when.elapsed().as_secs_f64();
        Duration::from_secs_f64((left / 4.0).clamp(ALERT.as_secs_f64(), CALM.as_secs_f64()))
    }

    /// About once a second, does two things. First, it measures the programs that replaced their process: no process of
    /// ours measures them, so the owner of the oldest other claim does. Second, it finds out whether all claims
    /// together use more than they may. Each measurement checks that too; here it is for a claim that was asked to stop
    /// and did not.
    fn look_around(&self, shared: &Shared, own: &[Arc<Own>]) -> (Vec<(usize, u64, u64)>, bool) {
        let mut kept = Vec::new();
        if self.ticks % 4 != 1 {
            return (kept, false);
        }
        let Ok(table) = shared.file.peek() else {
            return (kept, false);
        };
        let seats = table.records().iter().enumerate();
        let running = || seats.clone().filter(|(_, r)| r.counts());
        let oldest = running()
            .filter(|(_, r)| !r.flags.kept)
            .min_by_key(|(_, r)| r.started);
        if oldest.is_some_and(|(_, r)| own.iter().any(|o| o.ticket == r.ticket)) {
            let unmeasured = running().filter(|(_, r)| r.flags.kept);
            let kib_of = |r: &Record| proc::tree_use(r.pid).resident_kib;
            kept.extend(unmeasured.map(|(seat, r)| (seat, r.ticket, kib_of(r))));
        }
        (kept, decide::over_limit(table.records()).is_some())
    }
}

fn mark(table: &mut SeatTable, seat: usize, now: u64) {
    let record = table.change(seat);
    record.flags.evict = true;
    record.evicted = now;
}

/// What was measured of a tool, in KiB.
#[derive(Debug, Clone, Copy)]
struct Measurement {
    tool: u32,
    used_kib: u64,
    /// What is expected of it from now on.
    need_kib: u64,
}

/// Measures the tool of `own`. `None` if too little changed to be written down.
fn measure(own: &Own) -> Option<Measurement> {
    let tool = own.tool.load(Ordering::SeqCst);
    if tool == 0 {
        return None;
    }
    let used = proc::tree_use(tool);
    let used_kib = used.resident_kib;
    own.peak_kib.fetch_max(used_kib, Ordering::SeqCst);
    let need_kib = own.expect(tool, used, now())?;
    let record = own.record();
    let differs = |new: u64, noted: u64| new.abs_diff(noted) > WORTH_TELLING.max(noted / 16);
    let news = Measurement {
        tool,
        used_kib,
        need_kib,
    };
    (differs(used_kib, record.now_kib) || differs(need_kib, record.need_kib)).then_some(news)
}

/// Writes the news of `own` to the table.
fn write_down(own: &Own, table: &mut SeatTable, new: Option<Measurement>) {
    own.change(table, |record| {
        // The tool may have ended since it was measured. Its claim then waits for another run, or has another tool, and must not
        // be taken for one that needs little.
        let is_current = |new: &Measurement| own.tool.load(Ordering::SeqCst) == new.tool;
        if let Some(new) = new.filter(is_current) {
            note(record, new.used_kib);
            record.need_kib = new.need_kib;
        }
        // A claim that measures is not stopped.
        record.flags.suspended = false;
    });
}

fn note(record: &mut Record, kib: u64) {
    record.now_kib = kib;
    record.peak_kib = record.peak_kib.max(kib);
}

/// The memory that is there, and how much is enough, in KiB.
#[derive(Debug, Clone, Copy)]
struct Shortage {
    available: u64,
    enough: u64,
    reserve: u64,
}

impl Shortage {
    fn new(reading: &Reading, reserve: u64) -> Self {
        let is_stalled = reading.stalled >= STALLED;
        Self {
            available: reading.available_kib,
            enough: reserve.saturating_mul(if is_stalled { 2 } else { 1 }),
            reserve,
        }
    }

    fn is_short(self) -> bool {
        self.available < self.enough
    }

    /// Whether there is time for claims that were told to stop, and that give back so much.
    fn can_wait_for(self, freed: u64) -> bool {
        self.available.saturating_add(freed) >= self.enough && self.available >= self.reserve / 4
    }
}

/// The claim to stop when memory is short.
fn evict(
    records: &[Record],
    header: &Header,
    now: u64,
    memory: Shortage,
    domain: u64,
) -> Option<usize> {
    if is_stopping(records, now) && memory.can_wait_for(will_be_freed(records, now)) {
        return None;
    }
    let falls = memory.available < header.evicted_available / 8 * 7;
    if header.evicted > 0 && is_within(DAMPING, header.evicted, now) && !falls {
        return None;
    }
    decide::youngest(records, domain)
}

/// The claim to stop because more is used than may be. The available memory does not matter here. The figures of a
/// stopped tool disappear with it, so no pause is needed between two stops.
fn evict_over_limit(records: &[Record], now: u64) -> Option<usize> {
    (!is_stopping(records, now))
        .then(|| decide::over_limit(records))
        .flatten()
}

/// The claims that were told to stop and may still do so.
fn stopping(records: &[Record], now: u64) -> impl Iterator<Item = &Record> {
    let asked =
        move |r: &&Record| r.counts() && r.flags.evict && is_within(REACTION, r.evicted, now);
    records.iter().filter(asked)
}

fn is_stopping(records: &[Record], now: u64) -> bool {
    stopping(records, now).next().is_some()
}

/// What those that stop will give back, in KiB.
fn will_be_freed(records: &[Record], now: u64) -> u64 {
    let used = stopping(records, now).map(|record| record.now_kib);
    used.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
