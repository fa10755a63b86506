//! Looks at the budget's board and at the processes while a build runs: how many ran at most, and how much of the budget was
//! in use while a command waited for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use warpcc_budget::{Board, BoardPlace, BudgetLimits, Reserve, Snapshot};

/// The pause between two looks. Reading the board takes some ten microseconds.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread that looks until [`BoardWatch::finish`].
pub struct BoardWatch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// The observations of a [`BoardWatch`].
#[derive(Debug, Default)]
pub struct Seen {
    /// The most slots that claims held at a time.
    pub most_slots: u64,
    /// The most tools that ran at a time: children of the processes that hold claims.
    pub most_tools: usize,
    /// How long at least one command waited.
    pub wanted: Duration,
    /// Of that time, the part of all `slots` that was in use, from 0 to 1.
    pub used: f64,
    /// Of that time, the part of all `slots` in which a tool was at work.
    pub worked: f64,
    looks: u32,
}

impl BoardWatch {
    /// Begins to look at the board in `folder`, on which `slots` may run.
    pub fn start(folder: &Path, slots: u32) -> Self {
        let limits = BudgetLimits {
            slots,
            memory_kib: u64::MAX,
            reserve: Reserve(0),
        };
        let board = Board::open(&BoardPlace::At(folder.to_owned()), limits);
        let over = Arc::new(AtomicBool::new(false));
        let thread = {
            let over = Arc::clone(&over);
            std::thread::spawn(move || watch(&board, slots, &over))
        };
        Self { over, thread }
    }

    /// Gives the observations.
    pub fn finish(self) -> Seen {
        self.over.store(true, Ordering::SeqCst);
        let seen = self.thread.join().expect("the watch");
        assert!(seen.looks > 100, "hardly a look was taken: {seen:?}");
        seen
    }
}

fn watch(board: &Board, slots: u32, over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let (mut used, mut worked) = (0.0, 0.0);
    let mut last: Option<(Instant, u64, usize)> = None;
    while !over.load(Ordering::SeqCst) {
        let snapshot = board.snapshot();
        let now = Instant::now();
        let tools = tools(&snapshot);
        if let Some((before, in_use, at_work)) = last.take() {
            let passed = (now - before).as_secs_f64();
            seen.wanted += now - before;
            used += passed * in_use.min(slots.into()) as f64;
            worked += passed * at_work.min(slots as usize) as f64;
        }
        if snapshot.waiting().next().is_some() {
            last = Some((now, snapshot.slots(), tools.len()));
        }
        seen.looks += 1;
        let certain = certain_slots(board, &snapshot, seen.most_slots);
        seen.most_slots = seen.most_slots.max(certain);
        if tools.len() > seen.most_tools {
            seen.most_tools = seen.most_tools.max(still_run(&tools));
        }
        std::thread::sleep(PAUSE);
    }
    let whole = (seen.wanted.as_secs_f64() * f64::from(slots)).max(f64::MIN_POSITIVE);
    (seen.used, seen.worked) = (used / whole, worked / whole);
    seen
}

/// The slots that were certainly taken at once. The board is read without its lock: one seat may be seen before a change
/// and the next one after it. A claim that is there at both looks was there all the time in between.
fn certain_slots(board: &Board, snapshot: &Snapshot, known: u64) -> u64 {
    if snapshot.slots() <= known {
        return known;
    }
    let again = board.snapshot();
    let counted = snapshot.running().filter(|r| r.counts());
    let both = counted.filter(|r| again.running().any(|a| a.ticket == r.ticket && a.counts()));
    both.map(|r| u64::from(r.slots)).sum()
}

/// The children of all processes that hold a claim, from `/proc`.
fn tools(snapshot: &Snapshot) -> BTreeSet<u32> {
    let owners: BTreeSet<u32> = snapshot.running().map(|r| r.pid).collect();
    let threads = owners
        .iter()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok());
    let lists = threads
        .flat_map(|threads| threads.flatten())
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| {
        let words = list.split_ascii_whitespace();
        words.filter_map(|w| w.parse().ok()).collect::<Vec<u32>>()
    };
    lists.flat_map(numbers).filter(|pid| runs(*pid)).collect()
}

/// The number of tools that still run. They were seen one after the other, and have run at the same time if all run now.
fn still_run(tools: &BTreeSet<u32>) -> usize {
    tools.iter().filter(|pid| runs(**pid)).count()
}

/// Whether the process runs, and is no zombie.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
