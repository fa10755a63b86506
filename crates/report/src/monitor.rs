//! The live view of all tasks on a machine: what it is given, and how that looks as lines, as a
//! screen, and as a program that answers to keys.
//!
//! It does not know where the figures come from: the caller provides a [`MonitorSource`].

use std::time::Duration;

use crate::record::Wait;

mod plain;
mod program;
mod screen;
mod view;

pub use plain::{follow, lines};
pub use program::{MonitorEnded, MonitorSettings, run};
pub use screen::draw;
pub use view::{Colors, Sort, View};

/// Knows what the machine is doing.
pub trait MonitorSource {
    /// The present state. Called a few times per second; figures that cannot be found out are left out.
    fn snapshot(&mut self) -> MonitorState;
}

/// The state at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorState {
    /// The machine's name.
    pub host: String,
    /// Processor slots; zero where there is no limit.
    pub slots: u32,
    /// Memory.
    pub memory: MemoryNow,
    /// Running tasks.
    pub running: Vec<RunningTask>,
    /// Waiting tasks, the next one first; not necessarily all.
    pub waiting: Vec<WaitingTask>,
    /// The number of all waiting tasks.
    pub waiting_count: usize,
    /// Tasks that ended since the builds that are running began.
    pub finished: u64,
    /// Of those, the tasks that failed.
    pub failed: u64,
    /// Tasks that came from the cache.
    pub hits: u64,
    /// Tasks that did not.
    pub misses: u64,
    /// How long it will take, where the source knows; or else it is estimated from the tasks.
    pub left: Option<Duration>,
}

/// Memory of the machine, in KiB. Zero if it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryNow {
    /// All there is.
    pub total_kib: u64,
    /// Memory that is not available to new programs.
    pub used_kib: u64,
    /// The memory that our tasks may use together.
    pub budget_kib: u64,
    /// The part of the budget that the running tasks have.
    pub granted_kib: u64,
}

/// A task that runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunningTask {
    /// The file that it compiles.
    pub label: String,
    /// The tool.
    pub tool: String,
    /// The architecture, if it works for one.
    pub architecture: Option<String>,
    /// Since when.
    pub elapsed: Duration,
    /// How long it will take as a whole, from the last time.
    pub expected: Option<Duration>,
    /// The memory it holds, KiB.
    pub memory_kib: u64,
}

/// A task that could run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitingTask {
    /// The file that it compiles.
    pub label: String,
    /// The tool.
    pub tool: String,
    /// The architecture, if it works for one.
    pub architecture: Option<String>,
    /// Since when.
    pub waited: Duration,
    /// The reason for the wait.
    pub reason: Option<Wait>,
    /// How long it will take, from the last time.
    pub expected: Option<Duration>,
}

impl RunningTask {
    /// How much of it is left, where that is known.
    pub fn left(&self) -> Option<Duration> {
        self.expected
            .map(|expected| expected.saturating_sub(self.elapsed))
    }
}

impl MonitorState {
    /// How long all that is known of will take.
    ///
    /// The work that is left, spread over the slots, but no less than the longest piece. Tasks
    /// of unknown length count as the mean of the others; where all are unknown, so is this.
    pub fn time_left(&self) -> Option<Duration> {
        if self.left.is_some() {
            return self.left;
        }
        let running = self.running.iter().map(RunningTask::left);
        let waiting = self.waiting.iter().map(|task| task.expected);
        let pieces: Vec<f64> = running
            .chain(waiting)
            .flatten()
            .map(|left| left.as_secs_f64())
            .collect();
        let (sum, longest) = pieces.iter().fold((0.0, 0.0_f64), |(sum, longest), one| {
            (sum + one, longest.max(*one))
        });
        if pieces.is_empty() {
            return None;
        }
        let all = self.running.len() + self.waiting_count.max(self.waiting.len());
        let whole = sum / pieces.len() as f64 * all as f64;
        let slots = match self.slots {
            0 => self.running.len().max(1) as f64,
            slots => f64::from(slots),
        };
        Duration::try_from_secs_f64((whole / slots).max(longest)).ok()
    }
}

/// `12.3s`, `4:07`, `1:02:03`: short, because columns are narrow.
pub(crate) fn short_time(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 100 {
        return format!("{:.1}s", time.as_secs_f64());
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else {
        format!("{minutes}:{:02}", seconds % 60)
    }
}

/// `512K`, `31M`, `4.2G`.
pub(crate) fn short_memory(kib: u64) -> String {
    if kib < 1000 {
        format!("{kib}K")
    } else if kib < 1000 << 10 {
        format!("{}M", kib >> 10)
    } else {
        format!("{:.1}G", kib as f64 / f64::from(1 << 20))
    }
}

/// A name that is safe for a terminal: without characters that move the cursor or reverse the text.
pub fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let letter = |c: char| {
        if c.is_control() || turns(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(elapsed: u64, expected: Option<u64>) -> RunningTask {
        RunningTask {
            elapsed: Duration::from_secs(elapsed),
            expected: expected.map(Duration::from_secs),
            ..RunningTask::default()
        }
    }

    #[test]
    fn time_left_is_the_work_over_the_slots_or_the_longest_piece() {
        let mut now = MonitorState {
            slots: 2,
            running: vec![task(4, Some(10)), task(9, Some(7))],
            ..MonitorState::default()
        };
        assert_eq!(now.time_left(), Some(Duration::from_secs(6)));
        // 18 more tasks that are like those: mean 3 s, 20 tasks, 2 slots.
        now.waiting_count = 18;
        assert_eq!(now.time_left(), Some(Duration::from_secs(30)));
        now.left = Some(Duration::from_secs(5));
        assert_eq!(now.time_left(), Some(Duration::from_secs(5)));
        now = MonitorState {
            running: vec![task(4, None)],
            ..MonitorState::default()
        };
        assert_eq!(now.time_left(), None);
        assert_eq!(MonitorState::default().time_left(), None);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(short_time(Duration::from_millis(1240)), "1.2s");
        assert_eq!(short_time(Duration::from_secs(247)), "4:07");
        assert_eq!(short_time(Duration::from_secs(3723)), "1:02:03");
        assert_eq!(short_memory(512), "512K");
        assert_eq!(short_memory(31 << 10), "31M");
        assert_eq!(short_memory(4_404_019), "4.2G");
    }

    #[test]
    fn names_do_not_command_the_terminal() {
        assert_eq!(
            harmless("a\x1b[2Jb\u{202e}c\n"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}"
        );
        assert_eq!(harmless("äöü 日本"), "äöü 日本");
    }
}
