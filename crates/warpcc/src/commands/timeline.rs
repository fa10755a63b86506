//! Holds the data that every drawing is made from: which commands ran, when, and with which files.
//!
//! Rows may come from a run that failed half way, so nothing here assumes that
//! numbers are unique, that every number is known, or that there is no cycle.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// One command of the run.
#[derive(Debug, Clone)]
pub struct TaskRow {
    /// Its number, as other rows refer to it.
    pub number: usize,
    /// The tool, in NVIDIA's word: `cicc`, `ptxas`, `host`.
    pub tool: String,
    /// The architecture it works for, if it works for one.
    pub arch: Option<String>,
    /// The command's purpose, in a few words.
    pub label: String,
    /// The command in full.
    pub command: String,
    /// When it started, since the run did.
    pub started: Duration,
    /// When it finished, since the run started.
    pub finished: Duration,
    /// Processor time in its own code.
    pub user: Duration,
    /// Processor time in the system.
    pub system: Duration,
    /// The most memory it held.
    pub peak_kib: u64,
    /// How it ended.
    pub outcome: TaskOutcome,
    /// The files it reads and writes.
    pub files: Vec<FileRow>,
    /// The numbers of the tasks it waits for.
    pub needs: Vec<usize>,
    /// The files it waits for, each with the number of the task that writes it.
    pub why_edges: Vec<(usize, String)>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOutcome {
    /// It ran, and did its work.
    Ran,
    /// It did not run: its result was in the cache.
    Hit,
    /// It did not run: nothing needed it, or what it needs failed.
    Skipped,
    /// It ran, and ended with this code.
    Failed(i32),
}

impl TaskRow {
    /// The tool, and the architecture if it works for one: `cicc compute_90`.
    pub fn title(&self) -> String {
        match &self.arch {
            Some(arch) => format!("{} {arch}", self.tool),
            None => self.tool.clone(),
        }
    }
}

impl TaskOutcome {
    /// How the command ended, in words; `ran` describes one that ran and did its work.
    pub fn describe(self, ran: impl FnOnce() -> String) -> String {
        match self {
            Self::Ran => ran(),
            Self::Hit => "from the cache".to_owned(),
            Self::Skipped => "not run".to_owned(),
            Self::Failed(code) => format!("failed with exit code {code}"),
        }
    }
}

/// A file of a command.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// Its name.
    pub name: String,
    /// Its size in bytes, where known.
    pub size: Option<u64>,
    /// How the command uses the file.
    pub role: FileRole,
}

/// How a command uses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// It reads it.
    Reads,
    /// It writes it.
    Writes,
}

/// One compilation, finished or not.
#[derive(Debug, Clone)]
pub struct Run {
    /// The names of the compiled files, for headings.
    pub title: String,
    /// The commands, in nvcc's order.
    pub rows: Vec<TaskRow>,
    /// The environment they ran in.
    pub environment: Vec<(String, String)>,
    /// How long the run took.
    pub wall: Duration,
}

/// One row waits for another; both by position in [`Run::rows`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The row waited for.
    pub from: usize,
    /// The row that waits.
    pub to: usize,
    /// The files it waits for; empty where only the order is known.
    pub files: Vec<String>,
}

impl TaskRow {
    /// The time that the command took; zero for a skipped command.
    pub fn elapsed(&self) -> Duration {
        if self.outcome == TaskOutcome::Skipped {
            return Duration::ZERO;
        }
        self.finished.saturating_sub(self.started)
    }

    /// Whether its result came from the cache.
    pub fn cached(&self) -> bool {
        self.outcome == TaskOutcome::Hit
    }

    /// The exit code, where it ran.
    pub fn exit_code(&self) -> Option<i32> {
        match self.outcome {
            TaskOutcome::Ran => Some(0),
            TaskOutcome::Failed(code) => Some(code),
            TaskOutcome::Hit | TaskOutcome::Skipped => None,
        }
    }

    /// Its files of one role.
    pub fn files_of(&self, role: FileRole) -> impl Iterator<Item = &FileRow> {
        self.files.iter().filter(move |file| file.role == role)
    }
}

impl Run {
    /// Every known dependency once, ordered by `from` and `to`.
    pub fn edges(&self) -> Vec<Edge> {
        let position = self.positions();
        let mut files: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        for (to, row) in self.rows.iter().enumerate() {
            let named = row
                .why_edges
                .iter()
                .map(|(number, file)| (number, Some(file)));
            for (number, file) in row.needs.iter().map(|number| (number, None)).chain(named) {
                let Some(&from) = position.get(number) else {
                    continue;
                };
                if from == to {
                    continue;
                }
                let known = files.entry((from, to)).or_default();
                if let Some(file) = file.filter(|file| !known.contains(file)) {
                    known.push(file.clone());
                }
            }
        }
        files
            .into_iter()
            .map(|((from, to), files)| Edge { from, to, files })
            .collect()
    }

    /// The chain of rows that decided how long the run took, last row first.
    ///
    /// From the row that finished last, back through whatever each one waited for
    /// longest. Rows that took no time are left out: a run answered from the cache
    /// has no such chain.
    pub fn critical_path(&self) -> Vec<usize> {
        let edges = self.edges();
        let took_time = |row: &usize| !self.rows[*row].elapsed().is_zero();
        let finished = |row: &usize| self.rows[*row].finished;
        let mut path = Vec::new();
        let mut current = (0..self.rows.len()).filter(took_time).max_by_key(finished);
        while let Some(row) = current {
            if path.contains(&row) {
                break;
            }
            path.push(row);
            let before = edges
                .iter()
                .filter(|edge| edge.to == row)
                .map(|edge| edge.from);
            current = before.filter(took_time).max_by_key(finished);
        }
        path
    }

    /// For every row the lane it is drawn in, so that rows in one lane do not overlap.
    pub fn lanes(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|row| (self.rows[*row].started, *row));
        let mut free_at: Vec<Duration> = Vec::new();
        let mut lanes = vec![0; self.rows.len()];
        for row in order {
            let TaskRow {
                started, finished, ..
            } = self.rows[row];
            let lane = free_at
                .iter()
                .position(|free| *free <= started)
                .unwrap_or(free_at.len());
            let end = finished.max(started);
            match free_at.get_mut(lane) {
                Some(free) => *free = end,
                None => free_at.push(end),
            }
            lanes[row] = lane;
        }
        lanes
    }

    /// The time all rows took together.
    pub fn work(&self) -> Duration {
        self.rows
            .iter()
            .map(TaskRow::elapsed)
            .fold(Duration::ZERO, Duration::saturating_add)
    }

    fn positions(&self) -> HashMap<usize, usize> {
        // Backwards, so that the first of two rows with one number wins.
        self.rows
            .iter()
            .enumerate()
            .rev()
            .map(|(at, row)| (row.number, at))
            .collect()
    }
}
