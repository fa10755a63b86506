//! Steps that use results from elsewhere: if one fails, the result may be at fault. Then nvcc runs, and results from
//! elsewhere are dropped.

use warpcc_cache::{DiskStore, Key, Level};
use warpcc_engine::event::{Finished, StepOutcome};
use warpcc_plan::TaskGraph;

/// Why plain nvcc runs after such a failure.
pub const FAILS_ON_OTHERS: &str = "a step fails on a result from elsewhere";

/// The steps of a run that use results from elsewhere.
#[derive(Default)]
pub struct Doubt {
    rests: Vec<bool>,
    keys: Vec<Key>,
    /// The plan runs again: results that its first run fetched are now in the store, and hit like our own.
    again: bool,
    fails: bool,
}

impl Doubt {
    /// Notes that a step ended; the steps that it needs must have been noted before. True where the step failed, perhaps
    /// because of results from elsewhere.
    pub fn concerns(&mut self, graph: &TaskGraph, finished: &Finished) -> bool {
        self.rests.resize(graph.steps.len(), false);
        let needs_others = graph.needs(finished.step).iter().any(|&at| self.rests[at]);
        let hits_again = self.again && finished.outcome == StepOutcome::Hit;
        let is_others = hits_again || !finished.brought.is_empty();
        self.rests[finished.step] = needs_others || is_others;
        self.keys.extend_from_slice(&finished.brought);
        let fails = needs_others && matches!(finished.outcome, StepOutcome::Failed(_));
        self.fails |= fails;
        fails
    }

    /// Notes that the plan runs again from its start.
    pub fn begin_again(&mut self) {
        self.rests.clear();
        self.again = !self.keys.is_empty();
        self.fails = false;
    }

    /// Whether the run failed in this way; `store` then drops the results from elsewhere.
    pub fn is_justified(&self, store: Option<&DiskStore>) -> bool {
        if let Some(store) = store.filter(|_| self.fails) {
            for key in &self.keys {
                store.forget(Level::Steps, key);
            }
        }
        self.fails
    }
}
