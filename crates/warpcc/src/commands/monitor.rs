//! `warpcc monitor`: reads the budget's board, the memory and the counters of this machine for the live view.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;

use clap::Args;
use warpcc_budget::{Board, CommandKind, Record};
use warpcc_cache::DiskStore;
use warpcc_report::monitor::{
    self, Colors, MemoryNow, MonitorEnded, MonitorSettings, MonitorSource, MonitorState,
    RunningTask, WaitingTask, follow,
};
use warpcc_report::record::Wait;

use super::output;
use crate::config::{Config, NoColor, no_color};
use crate::resources;
use crate::store::open_store;

const MONITOR_NOTE: &str = "\
Without a terminal, or with --plain, it writes lines until nothing runs or waits.
Finished tasks are counted from the start of the monitor.";

/// `warpcc monitor`.
#[derive(Debug, Args)]
#[command(after_help = MONITOR_NOTE)]
pub struct MonitorArgs {
    /// Seconds between refreshes
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = interval)]
    pub interval: Duration,
    /// Write plain lines even on a terminal
    #[arg(long)]
    pub plain: bool,
}

/// Parses the interval. A tenth of a second is the least: nobody reads faster, and each look has a cost.
fn interval(text: &str) -> Result<Duration, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("must be a number of seconds from 0.1 to 3600"),
    }
}

/// Shows the running tasks until the user ends it or, as plain lines, until no task runs. Gives the exit code.
///
/// # Errors
/// The terminal is gone.
pub fn run(args: &MonitorArgs, config: &Config) -> anyhow::Result<i32> {
    // Without a cache the tasks can still be shown.
    let store = open_store(config);
    let store = store.as_ref();
    let board = Board::open(&resources::place(config), config.limits());
    for warning in board.warnings() {
        crate::log::warn(&warning.to_string());
    }
    let mut source = Machine {
        board,
        store,
        before: store.map(DiskStore::counters).unwrap_or_default(),
    };
    if args.plain || !output::is_terminal() {
        output::print(|out| follow(&mut source, args.interval, out))?;
        return Ok(0);
    }
    let settings = MonitorSettings {
        every: args.interval,
        colors: match no_color() {
            NoColor::Asked => Colors::None,
            NoColor::NotAsked => Colors::Some,
        },
    };
    match monitor::run(&mut source, &settings, io::stdout)? {
        MonitorEnded::Quit => Ok(0),
        MonitorEnded::Signal(signal) => Ok(128 + signal),
    }
}

/// Everything that is known of the machine's tasks.
struct Machine<'a> {
    board: Board,
    store: Option<&'a DiskStore>,
    /// The counters when the monitor was started.
    before: BTreeMap<String, u64>,
}

impl MonitorSource for Machine<'_> {
    fn snapshot(&mut self) -> MonitorState {
        let limits = self.board.limits();
        let now = self.board.snapshot();
        let mut queue: Vec<&Record> = now.waiting().collect();
        queue.sort_by_key(|claim| (std::cmp::Reverse(claim.priority_ms), claim.ticket));
        let full = now.slots() >= u64::from(limits.slots);
        let mut running: Vec<&Record> = now.running().collect();
        running.sort_by_key(|claim| (claim.started, claim.ticket));
        let granted = running.iter().filter(|claim| claim.counts());
        let granted_kib = granted.map(|claim| claim.need_kib.max(claim.now_kib)).sum();
        let mut snapshot = MonitorState {
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            slots: limits.slots,
            memory: MemoryNow {
                budget_kib: limits.memory_kib,
                granted_kib,
                ..memory()
            },
            waiting_count: queue.len(),
            running: running.iter().map(|r| running_task(r, now.taken)).collect(),
            waiting: queue
                .iter()
                .map(|r| waiting_task(r, now.taken, full))
                .collect(),
            ..MonitorState::default()
        };
        if let Some(store) = self.store {
            count(&store.counters(), &self.before, &mut snapshot);
        }
        snapshot
    }
}

/// Adds the hits, misses and failures since the monitor was started. A direct hit counts as one hit.
fn count(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>, snapshot: &mut MonitorState) {
    for (name, count) in now {
        // Somebody may have reset the counters since.
        let more = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        if name == "invocations.direct_hits"
            || name.starts_with("steps.") && name.ends_with(".hits")
        {
            snapshot.hits += more;
        } else if name.starts_with("steps.") && name.ends_with(".misses") {
            snapshot.misses += more;
        } else if name == "invocations.failed" {
            snapshot.failed += more;
        }
    }
    snapshot.finished = snapshot.hits.saturating_add(snapshot.misses);
}

fn running_task(claim: &Record, now: u64) -> RunningTask {
    let (label, architecture) = split(claim.label.as_str());
    RunningTask {
        label,
        tool: tool(claim.kind),
        architecture,
        elapsed: since(claim.started, now),
        expected: expected(claim),
        memory_kib: claim.now_kib,
    }
}

fn waiting_task(claim: &Record, now: u64, full: bool) -> WaitingTask {
    let (label, architecture) = split(claim.label.as_str());
    WaitingTask {
        label,
        tool: tool(claim.kind),
        architecture,
        waited: since(claim.arrived, now),
        // With a free slot, the task can only wait for memory.
        reason: Some(if full { Wait::Cpu } else { Wait::Memory }),
        expected: expected(claim),
    }
}

/// The tool's name in reports.
fn tool(kind: CommandKind) -> String {
    match kind {
        CommandKind::HostCompile => "host",
        other => other.name(),
    }
    .to_owned()
}

fn since(then: u64, now: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(then))
}

fn expected(claim: &Record) -> Option<Duration> {
    (claim.expected_ms > 0).then(|| Duration::from_millis(claim.expected_ms))
}

/// A claim is called `file.cu sm_90`, or `file.cu` where it works for no architecture.
fn split(label: &str) -> (String, Option<String>) {
    let is_architecture = |word: &str| {
        ["sm_", "compute_", "lto_"]
            .iter()
            .any(|start| word.starts_with(start))
    };
    match label.rsplit_once(' ') {
        Some((file, last)) if is_architecture(last) => (file.to_owned(), Some(last.to_owned())),
        _ => (label.to_owned(), None),
    }
}

fn memory() -> MemoryNow {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib = field(&text, "MemTotal:").unwrap_or(0);
    MemoryNow {
        total_kib,
        used_kib: field(&text, "MemAvailable:")
            .map_or(0, |available| total_kib.saturating_sub(available)),
        ..MemoryNow::default()
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_taken_apart() {
        let architecture = |text: &str| Some(text.to_owned());
        assert_eq!(
            split("a.cu sm_90a"),
            ("a.cu".into(), architecture("sm_90a"))
        );
        assert_eq!(
            split("my file.cu compute_80"),
            ("my file.cu".into(), architecture("compute_80"))
        );
        assert_eq!(split("my file.cu"), ("my file.cu".into(), None));
        assert_eq!(split(""), (String::new(), None));
    }

    #[test]
    fn counts_start_when_somebody_looks() {
        let counted = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            pairs.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect()
        };
        let before = counted(&[("steps.cicc.hits", 5), ("invocations.failed", 9)]);
        let now = counted(&[
            ("steps.cicc.hits", 7),
            ("steps.ptxas.misses", 3),
            ("invocations.direct_hits", 1),
            ("invocations.failed", 1),
            ("saved.micros", 1_000_000),
        ]);
        let mut snapshot = MonitorState::default();
        count(&now, &before, &mut snapshot);
        assert_eq!((snapshot.hits, snapshot.misses), (3, 3));
        assert_eq!((snapshot.finished, snapshot.failed), (6, 0));
    }

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       65800028 kB\nMemFree: 1 kB\nMemAvailable:    5 kB\n";
        assert_eq!(field(text, "MemTotal:"), Some(65_800_028));
        assert_eq!(field(text, "MemAvailable:"), Some(5));
        assert_eq!(field("MemTotal:", "MemTotal:"), None);
    }
}
