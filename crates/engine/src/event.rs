//! The result of a task, for reports.

use std::time::Duration;

use warpcc_cache::Key;

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// The command ran.
    Ran,
    /// The result came from the cache.
    Hit,
    /// The command failed with this exit code.
    Failed(i32),
    /// The command did not run, because an earlier one failed.
    Skipped,
}

/// The resource that a task waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitedFor {
    /// A slot: all processors were in use.
    #[default]
    Slot,
    /// Memory, while a slot was free.
    Memory,
    /// A token of the build tool.
    Token,
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Index of the step in the plan.
    pub step: usize,
    /// The outcome.
    pub outcome: StepOutcome,
    /// When it started, since the start of the run.
    pub started: Duration,
    /// When it ended, since the start of the run.
    pub finished: Duration,
    /// How long it waited for a slot, memory or a token.
    pub waited: Duration,
    /// The cause of most of the wait.
    pub waited_for: WaitedFor,
    /// For a hit, the processor time that its result took to make.
    pub saved: Duration,
    /// How often the command was ended to make room for others, and started again.
    pub retries: u32,
    /// Whether the command ran on another machine.
    pub is_remote: bool,
    /// User CPU time of the process. If it ran on another machine, the time that it took there.
    pub user: Duration,
    /// System CPU time of the process.
    pub system: Duration,
    /// Peak resident memory of the largest process, KiB.
    pub peak_kib: u64,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Why its result was not stored; `None` if it was, or need not be.
    pub not_stored: Option<String>,
    /// The key of its stored result, and the second key, without line numbers, under which it may be stored too.
    pub of_any_lines: Option<(Key, Key)>,
    /// Whether its result contains an absolute path below a mapped folder, so that it can be used in this directory only.
    pub is_path_specific: bool,
    /// The keys of its result, if a shared cache or another machine sent it; otherwise empty.
    pub fetched_keys: Vec<Key>,
    /// The path and the size of each file that it wrote, if the file is on disk.
    pub files: Vec<(usize, Option<u64>)>,
}

impl Finished {
    /// Milliseconds from start to end, without the wait.
    pub fn busy_millis(&self) -> u64 {
        let busy = self.finished.saturating_sub(self.started);
        u64::try_from(busy.saturating_sub(self.waited).as_millis()).unwrap_or(u64::MAX)
    }

    /// A task of which only the outcome is known.
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
            is_remote: false,
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
