//! Which task runs next, and what follows when one ends: states, speculation, failures, and the order of output. It
//! starts nothing and touches no file by itself.
//!
//! Of the ready tasks, the one that starts next is the one with the longest chain of tasks after it.
//!
//! nvcc runs commands in order and stops at the first that fails. This has the same effect: when a task fails, later tasks are
//! ended, and earlier tasks go on, because one of them may fail too, and nvcc would have shown that failure. Under `--threads`
//! the same is true of phases instead of tasks ([`OnFailure`]).
//!
//! A step may have started with an assumption about a file ([`Assumed`]). When the file exists, the assumption is compared with
//! it. If it was wrong, the step that used it runs again, or the whole plan runs again without overlaps.

use std::collections::BTreeMap;
use std::io;

use warpcc_plan::assumed::{Assumed, Expected};
use warpcc_plan::{FileId, TaskGraph, Tool};

use crate::any_lines::OTHER_LINES;
use crate::artifact::LOST;
use crate::event::{Finished, StepOutcome};
use crate::failure::OnFailure;
use crate::splice::{NOT_SPLICED, SAID_SOMETHING};
use crate::states::{TaskState, TaskStates};
use crate::traced_inputs::Seen;

/// Why a plan is run again where a stub could not be corrected, or not in time.
const OTHER_STUB: &str = "the stub is not the remembered one";
/// The same for a module id.
const OTHER_ID: &str = "the module id is not the remembered one";

/// The effects of a schedule on files and processes.
pub trait Effects {
    /// Whether the file that decides holds what was assumed.
    fn confirms(&self, assumed: &Assumed) -> bool;
    /// Copies what is over what was assumed. Whether that worked.
    fn correct(&self, actual: FileId, assumed: FileId) -> bool;
    /// Ends the processes of every task for which `which` holds.
    fn kill(&self, which: &dyn Fn(usize) -> bool);
}

/// The result of all tasks.
pub struct End {
    /// The tasks that count, by their places in the plan.
    pub tasks: BTreeMap<usize, (Finished, Seen)>,
    /// Why the same plan is to be run without its overlaps.
    pub retry: Option<&'static str>,
    /// An error that is not a compiler's verdict.
    pub abort_reason: Option<String>,
}

/// The state of a run.
pub struct Schedule<'a> {
    graph: &'a TaskGraph,
    on_failure: OnFailure,
    effects: &'a dyn Effects,
    states: TaskStates,
    ended: BTreeMap<usize, (Finished, Seen)>,
    /// The rank of the first failure.
    failed: usize,
    abort_reason: Option<String>,
    retry: Option<&'static str>,
    /// Assumptions that are not confirmed yet.
    open: Vec<&'a Assumed>,
    /// A task that worked on a text that was corrected meanwhile, and was ended for it.
    discarded: Option<usize>,
    /// A task that was ended because its result came from elsewhere.
    pointless: Option<usize>,
    /// The number of tasks that have been shown.
    shown: usize,
}

impl<'a> Schedule<'a> {
    /// Nothing has started yet.
    pub fn new(
        graph: &'a TaskGraph,
        on_failure: OnFailure,
        states: TaskStates,
        effects: &'a dyn Effects,
    ) -> Self {
        Self {
            graph,
            on_failure,
            effects,
            states,
            ended: BTreeMap::new(),
            failed: usize::MAX,
            abort_reason: None,
            retry: None,
            open: graph.assumed.iter().collect(),
            discarded: None,
            pointless: None,
            shown: 0,
        }
    }

    /// The state of every task.
    pub fn states(&self) -> &TaskStates {
        &self.states
    }

    /// Something went wrong that is no compiler's verdict.
    pub fn give_up(&mut self, why: String) {
        self.abort_reason = Some(why);
    }

    /// The next task, which is now running, and its priority.
    pub fn start(&mut self) -> Option<(usize, u64)> {
        let task = self.states.next()?;
        self.states.advance(task, TaskState::Running);
        Some((task, self.states.priority(task)))
    }

    /// The task could not be started now.
    pub fn put_back(&mut self, task: usize) {
        self.states.advance(task, TaskState::Ready);
    }

    /// Whether nvcc would have started the task, as far as is known.
    pub fn counts(&self, task: usize) -> bool {
        self.rank(task) <= self.failed
    }

    fn rank(&self, task: usize) -> usize {
        self.on_failure.rank(self.graph, task)
    }

    /// A running task came to its end; an error is no verdict of its tool.
    pub fn ended(&mut self, task: usize, result: io::Result<(Finished, Seen)>) {
        let (finished, seen) = result.unwrap_or_else(|error| {
            self.broke_off(task, &error);
            (Finished::new(task, StepOutcome::Failed(1)), Seen::default())
        });
        let fails = matches!(finished.outcome, StepOutcome::Failed(_));
        if self.pointless == Some(task) {
            self.pointless = None;
            return;
        }
        if fails && self.graph.steps[task].tool == Tool::EarlyStub {
            // The real cicc will say what is wrong, or that nothing is.
            return self.states.advance(task, TaskState::Waiting);
        }
        if self.discarded == Some(task) {
            self.discarded = None;
            return self.states.advance(task, TaskState::Ready);
        }
        if fails && self.is_guess(task) {
            // Perhaps only because of what it assumed: it waits for the truth.
            return self.states.advance(task, TaskState::Waiting);
        }
        if fails {
            self.fail(task);
        } else {
            self.succeed(task);
        }
        // The run is given up, and plain nvcc does everything: the other tasks are not needed.
        if self.is_given_up() {
            self.failed = 0;
            self.states.stop();
            self.effects.kill(&|_| true);
            return;
        }
        self.ended.insert(task, (finished, seen));
    }

    fn is_given_up(&self) -> bool {
        self.retry.is_some() || self.abort_reason.is_some()
    }

    fn broke_off(&mut self, task: usize, error: &io::Error) {
        let text = error.to_string();
        let mut known = [NOT_SPLICED, SAID_SOMETHING, LOST, OTHER_LINES].into_iter();
        let lost = known.find(|why| text == *why);
        if self.discarded == Some(task) || self.pointless == Some(task) {
            // Ended by us.
        } else if let Some(why) = lost {
            self.retry.get_or_insert(why);
        } else if self.counts(task) {
            self.abort_reason = Some(format!("{}: {error}", self.graph.steps[task].tool));
        }
    }

    /// Whether the task works on something that is not certain yet.
    fn is_guess(&self, task: usize) -> bool {
        let mut redone = self.open.iter().filter_map(|assumed| assumed.redo);
        redone.any(|(step, _)| step == task)
    }

    fn fail(&mut self, task: usize) {
        self.states.advance(task, TaskState::Over);
        let failed = self.rank(task);
        if failed >= self.failed {
            return;
        }
        self.failed = failed;
        let (graph, on_failure) = (self.graph, self.on_failure);
        let is_cut = |other: usize| on_failure.rank(graph, other) > failed;
        self.states.cut(is_cut);
        self.effects
            .kill(&|other| other < graph.steps.len() && is_cut(other));
    }

    fn succeed(&mut self, task: usize) {
        self.states.advance(task, TaskState::Done);
        let graph = self.graph;
        let writes = &graph.steps[task].writes;
        let open = std::mem::take(&mut self.open);
        let (decided, undecided): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|a| writes.contains(&a.file));
        self.open = undecided;
        for assumed in decided {
            self.decide(assumed);
        }
    }

    /// The file that an assumption was about is there.
    fn decide(&mut self, assumed: &Assumed) {
        let held = self.effects.confirms(assumed);
        if let Expected::SameAs(early, step) = assumed.expected
            && self.states.get(step) != TaskState::Done
        {
            return self.overtake(assumed.file, early, step);
        }
        let Some((step, stand_in)) = assumed.redo else {
            if !held {
                self.retry = Some(OTHER_ID);
            }
            return;
        };
        // Nothing that needs `step` has started: that needs this task as well.
        match self.states.get(step) {
            _ if !held && !self.effects.correct(assumed.file, stand_in) => {
                self.retry = Some(OTHER_STUB);
            }
            TaskState::Waiting if self.states.is_free(step) => {
                self.states.advance(step, TaskState::Ready);
            }
            TaskState::Running if !held => {
                self.discarded = Some(step);
                self.effects.kill(&|other| other == step);
            }
            TaskState::Done if !held => {
                self.ended.remove(&step);
                self.states.advance(step, TaskState::Ready);
            }
            _ => {}
        }
    }

    /// The real file was there before the early one, from the cache: the step that makes the early one is not needed.
    fn overtake(&mut self, real: FileId, early: FileId, step: usize) {
        self.effects.kill(&|other| other == step);
        self.pointless = (self.states.get(step) == TaskState::Running).then_some(step);
        if !self.effects.correct(real, early) {
            self.retry = Some(OTHER_STUB);
        }
        let skipped = (Finished::new(step, StepOutcome::Skipped), Seen::default());
        self.ended.insert(step, skipped);
        self.states.advance(step, TaskState::Done);
    }

    /// Shows what nothing that is still to come can change, in plan order.
    pub fn show(&mut self, each: &mut dyn FnMut(&Finished)) {
        if self.open.is_empty() && !self.is_given_up() {
            self.show_in_order(each);
        }
    }

    /// Shows what counts and was not shown yet, when nothing runs any more.
    pub fn show_rest(&mut self, each: &mut dyn FnMut(&Finished)) {
        if self.on_failure == OnFailure::Stop {
            // A failure before the command that would have confirmed an assumption depends on none.
            if !self.is_given_up() {
                self.show_in_order(each);
            }
        } else if self.retry.is_none() {
            let counts = self.ended.values().map(|(finished, _)| finished);
            counts
                .filter(|finished| self.counts(finished.step))
                .for_each(each);
        }
    }

    fn show_in_order(&mut self, each: &mut dyn FnMut(&Finished)) {
        while let Some((finished, _)) = self.ended.get(&self.shown)
            && self.on_failure == OnFailure::Stop
            && self.shown <= self.failed
        {
            each(finished);
            self.shown += 1;
        }
    }

    /// The failed tasks that count; empty where nvcc does everything again.
    pub fn failures(&self) -> impl Iterator<Item = usize> + '_ {
        let failing = self.ended.values().map(|(finished, _)| finished);
        failing
            .filter(|finished| matches!(finished.outcome, StepOutcome::Failed(_)))
            .map(|finished| finished.step)
            .filter(|&task| !self.is_given_up() && self.counts(task))
    }

    /// The result of all tasks that count.
    pub fn end(mut self) -> End {
        let mut tasks = std::mem::take(&mut self.ended);
        tasks.retain(|&task, _| self.counts(task));
        End {
            tasks,
            retry: self.retry,
            abort_reason: self.abort_reason,
        }
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
