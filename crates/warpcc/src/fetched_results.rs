//! Tracks which steps of a run use results that shared caches or other machines made. If such a step fails, the fetched
//! result may be wrong. Then plain nvcc carries out the call, and the fetched results are removed from the cache.

use warpcc_cache::{DiskStore, Key, Level};
use warpcc_engine::event::{Finished, StepOutcome};
use warpcc_plan::TaskGraph;

/// The reason that is counted after such a failure.
pub const FETCHED_RESULT_FAILS: &str = "a step fails on a result from elsewhere";

/// The fetched results of a run, and the steps that depend on them.
#[derive(Default)]
pub struct FetchedResults {
    /// For each step, whether its result was fetched or was made from a fetched result.
    depends_on_fetched: Vec<bool>,
    keys: Vec<Key>,
    /// True while the plan runs a second time. Results that the first run fetched are in the cache now, and cannot be told
    /// from results of this machine.
    is_rerun: bool,
    /// Whether a step failed that reads a fetched result.
    reader_failed: bool,
}

impl FetchedResults {
    /// Notes a step that has ended. The steps that it needs must have been noted before. Returns true if the step failed
    /// and reads a fetched result.
    pub fn note_end(&mut self, graph: &TaskGraph, finished: &Finished) -> bool {
        self.depends_on_fetched.resize(graph.steps.len(), false);
        let mut needs = graph.needs(finished.step).iter();
        let reads_fetched = needs.any(|&step| self.depends_on_fetched[step]);
        let may_be_fetched = self.is_rerun && finished.outcome == StepOutcome::Hit;
        let is_fetched = may_be_fetched || !finished.fetched_keys.is_empty();
        self.depends_on_fetched[finished.step] = reads_fetched || is_fetched;
        self.keys.extend_from_slice(&finished.fetched_keys);
        let fails = reads_fetched && matches!(finished.outcome, StepOutcome::Failed(_));
        self.reader_failed |= fails;
        fails
    }

    /// Notes that the plan runs again from its start.
    pub fn start_rerun(&mut self) {
        self.depends_on_fetched.clear();
        self.is_rerun = !self.keys.is_empty();
        self.reader_failed = false;
    }

    /// Returns whether a step failed that reads a fetched result. If so, removes the fetched results from `store`.
    pub fn remove_after_failure(&self, store: Option<&DiskStore>) -> bool {
        if let Some(store) = store.filter(|_| self.reader_failed) {
            for key in &self.keys {
                store.forget(Level::Steps, key);
            }
        }
        self.reader_failed
    }
}
