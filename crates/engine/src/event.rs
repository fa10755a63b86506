//! Everything that a report can know about a task.

use std::time::Duration;

use warpcc_cache::Key;

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It ran.
    Ran,
    /// Its result came from the cache.
    Hit,
    /// It failed with this exit code.
    Failed(i32),
    /// An earlier command's failure made it pointless.
    Skipped,
}

/// The resource that a task waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitedFor {
    /// That others need fewer processors.
    #[default]
    Slot,
    /// That others need less memory, though a slot was free.
    Memory,
    /// A token of the build tool.
    Token,
}

/// A task that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Index of the step in the plan.
    pub step: usize,
    /// The outcome.
    pub outcome: StepOutcome,
    /// Since the start of the run.
    pub started: Duration,
    /// Since the start of the run.
    pub finished: Duration,
    /// How much of that it waited for its turn on the machine.
    pub waited: Duration,
    /// The cause of most of the wait.
    pub waited_for: WaitedFor,
    /// For a hit: the processor time that the run it comes from had cost.
    pub saved: Duration,
    /// How often it was ended to make room, and began again.
    pub retries: u32,
    /// Whether it ran on another machine.
    pub away: bool,
    /// User CPU time of the process; of one that ran elsewhere the time that it took there.
    pub user: Duration,
    /// System CPU time of the process.
    pub system: Duration,
    /// Peak resident memory of the largest process, KiB.
    pub peak_kib: u64,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Why its result was not stored, where it should have been.
    pub not_stored: Option<String>,
    /// The key of its stored result, and the key that this result may have for a text with other lines.
    pub of_any_lines: Option<(Key, Key)>,
    /// Its result embeds an absolute path below a mapped folder, so it is reusable only in this directory.
    pub is_path_specific: bool,
    /// The keys of its result, where another machine made it.
    pub fetched_keys: Vec<Key>,
    /// Where each file it wrote was, and its size, if it is on disk.
    pub files: Vec<(usize, Option<u64>)>,
}

impl Finished {
    /// Milliseconds that it was at work, waiting for its turn not counted.
    pub fn busy_millis(&self) -> u64 {
        let busy = self.finished.saturating_sub(self.started);
        u64::try_from(busy.saturating_sub(self.waited).as_millis()).unwrap_or(u64::MAX)
    }

    /// A task about which nothing is known but how it ended.
    pub fn new(step: usize, outcome: StepOutcome) -> Self {
        Self {
            step,
            outcome,
            started: Duration::ZERO,
            finished: Duration::ZERO,
            waited: Duration::ZERO,
            waited_for: WaitedFor::Slot,
            saved: Duration::ZERO,
            retries: 0,
            away: false,
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak_kib: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
            not_stored: None,
            of_any_lines: None,
            is_path_specific: false,
            fetched_keys: Vec::new(),
            files: Vec::new(),
        }
    }
}
