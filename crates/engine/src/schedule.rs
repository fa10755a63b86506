//! Decides which task runs next, and what follows when one ends: states, speculation, failures, and the order of output. It
//! starts no process and touches no file by itself.
//!
//! Of the ready tasks, the one that starts next is the one with the longest chain of tasks after it.
//!
//! nvcc runs commands in order and stops at the first that fails. The schedule has the same effect: when a task fails, it
//! ends later tasks and lets earlier ones go on, because one of them may fail too, and nvcc would have shown that failure.
//! Under `--threads` the same is true of phases instead of tasks ([`OnFailure`]).
//!
//! A step may have started with an assumption about a file ([`Assumed`]). When the file exists, the assumption is compared with
//! it. If it was wrong, the step that used it runs again, or the whole plan runs again without overlaps.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use warpcc_plan::assumed::{Assumed, Expected};
use warpcc_plan::{FileId, TaskGraph};

use crate::any_lines::OTHER_LINES;
use crate::artifact::LOST;
use crate::event::{Finished, StepOutcome};
use crate::failure::OnFailure;
use crate::held::HELD;
use crate::local::HALF_FAILED;
use crate::splice::{NOT_SPLICED, SAID_SOMETHING};
use crate::states::{TaskState, TaskStates};
use crate::traced_inputs::TracedInputs;

/// The reason for a second run when a stub could not be corrected, or not in time.
const OTHER_STUB: &str = "the stub is not the remembered one";
/// The reason for a second run when a module id differs.
const OTHER_ID: &str = "the module id is not the remembered one";

/// The effects of a schedule on files and processes.
pub trait Effects {
    /// Whether the actual file has the content that was assumed.
    fn confirms(&self, assumed: &Assumed) -> bool;
    /// Copies the actual file over the assumed one. Returns whether that worked.
    fn correct(&self, actual: FileId, assumed: FileId) -> bool;
    /// Ends the processes of every task for which `which` holds.
    fn kill(&self, which: &dyn Fn(usize) -> bool);
}

/// The result of all tasks.
pub struct End {
    /// The tasks that count, by their index in the plan.
    pub tasks: BTreeMap<usize, (Finished, TracedInputs)>,
    /// Why the same plan must run again without its overlaps.
    pub retry: Option<&'static str>,
    /// An error that is not the compiler's.
    pub abort_reason: Option<String>,
}

/// The state of a run.
pub struct Schedule<'a> {
    graph: &'a TaskGraph,
    on_failure: OnFailure,
    effects: &'a dyn Effects,
    states: TaskStates,
    ended: BTreeMap<usize, (Finished, TracedInputs)>,
    /// The rank of the first failure.
    failed: usize,
    abort_reason: Option<String>,
    retry: Option<&'static str>,
    /// Assumptions that are not confirmed yet.
    open: Vec<&'a Assumed>,
    /// Tasks that were ended because the text on which they worked was corrected.
    discarded: BTreeSet<usize>,
    /// Whether the file that a step announces has been announced.
    is_announced: bool,
    /// The number of tasks that have been shown.
    shown: usize,
}

impl<'a> Schedule<'a> {
    /// The schedule before the first task.
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
            discarded: BTreeSet::new(),
            is_announced: false,
            shown: 0,
        }
    }

    /// The state of every task.
    pub fn states(&self) -> &TaskStates {
        &self.states
    }

    /// Gives the run up for an error that is not the compiler's.
    pub fn give_up(&mut self, why: String) {
        self.abort_reason = Some(why);
    }

    /// Marks the next task as running, and returns it with its priority.
    pub fn start(&mut self) -> Option<(usize, u64)> {
        let task = self.states.next()?;
        self.states.advance(task, TaskState::Running);
        Some((task, self.states.priority(task)))
    }

    /// Returns a task that could not be started now.
    pub fn put_back(&mut self, task: usize) {
        self.states.advance(task, TaskState::Ready);
    }

    /// Whether nvcc would have started the task, as far as warpcc knows.
    pub fn counts(&self, task: usize) -> bool {
        self.rank(task) <= self.failed
    }

    fn rank(&self, task: usize) -> usize {
        self.on_failure.rank(self.graph, task)
    }

    /// Handles the end of a running task. An `Err` is an error of warpcc, not of the tool.
    pub fn ended(&mut self, task: usize, result: io::Result<(Finished, TracedInputs)>) {
        let (finished, seen) = result.unwrap_or_else(|error| {
            self.broke_off(task, &error);
            (
                Finished::new(task, StepOutcome::Failed(1)),
                TracedInputs::default(),
            )
        });
        let fails = matches!(finished.outcome, StepOutcome::Failed(_));
        if self.discarded.remove(&task) {
            return self.states.advance(task, TaskState::Ready);
        }
        if fails && self.is_guess(task) {
            // The assumption may have caused the failure: the task waits until it is decided.
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
        let mut known = [
            NOT_SPLICED,
            SAID_SOMETHING,
            HALF_FAILED,
            LOST,
            OTHER_LINES,
            HELD,
        ]
        .into_iter();
        let lost = known.find(|why| text == *why);
        if self.discarded.contains(&task) {
            // This run ended the task.
        } else if text == HELD && !self.counts(task) {
            // nvcc would not have started it.
        } else if let Some(why) = lost {
            self.retry.get_or_insert(why);
        } else if self.counts(task) {
            self.abort_reason = Some(format!("{}: {error}", self.graph.steps[task].tool));
        }
    }

    /// Whether the task works on an assumption that is not confirmed yet.
    fn is_guess(&self, task: usize) -> bool {
        let step = &self.graph.steps[task];
        self.open.iter().any(|assumed| assumed.is_used_by(step))
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

    /// Handles an assumption whose actual file now exists.
    fn decide(&mut self, assumed: &Assumed) {
        if self.is_unannounced(assumed) {
            // No step has started on it.
            if !self.effects.correct(assumed.file, assumed.stand_in) {
                self.retry = Some(OTHER_STUB);
            }
            return;
        }
        let held = self.effects.confirms(assumed);
        if !held && !self.correct(assumed) {
            let is_id = self.graph.file(assumed.file).is_module_id();
            self.retry = Some(if is_id { OTHER_ID } else { OTHER_STUB });
            return;
        }
        for task in self.users(assumed) {
            self.decide_task(task, held);
        }
    }

    /// Whether this is an assumption that nobody has made yet.
    fn is_unannounced(&self, assumed: &Assumed) -> bool {
        assumed.expected == Expected::Announced && !self.is_announced
    }

    /// Handles an announcement: a step that is running has written `file`. A step that reads it may start, and one that has
    /// started on other content begins again. The end of the running step decides whether the announced content was right.
    pub fn announced(&mut self, file: FileId) {
        let graph = self.graph;
        let assumed = self.open.iter().find(|assumed| assumed.file == file);
        let (Some(&assumed), Some(writer)) = (assumed, graph.file(file).writer) else {
            return;
        };
        if self.states.get(writer) != TaskState::Running || self.is_given_up() {
            return;
        }
        if self.is_unannounced(assumed) {
            if !self.effects.correct(file, assumed.stand_in) {
                return;
            }
            self.is_announced = true;
            for task in self.users(assumed) {
                self.states.release(task, writer);
            }
        } else if !self.effects.confirms(assumed) && self.correct(assumed) {
            for task in self.users(assumed) {
                self.decide_task(task, false);
            }
        }
    }

    /// The tasks that work on an assumption.
    fn users(&self, assumed: &Assumed) -> Vec<usize> {
        let steps = self.graph.steps.iter().enumerate();
        steps
            .filter(|(_, step)| assumed.is_used_by(step))
            .map(|(task, _)| task)
            .collect()
    }

    /// Writes the actual file over the assumed one. Returns whether that was possible: no task has worked on a result that was
    /// made from it.
    fn correct(&self, assumed: &Assumed) -> bool {
        let mut users = self.users(assumed).into_iter();
        !users.any(|task| self.states.has_been_used(task))
            && self.effects.correct(assumed.file, assumed.stand_in)
    }

    /// Handles a task that used an assumption, which is confirmed or corrected now.
    fn decide_task(&mut self, task: usize, held: bool) {
        match self.states.get(task) {
            TaskState::Waiting if self.states.is_free(task) => {
                self.states.advance(task, TaskState::Ready);
            }
            TaskState::Running if !held => {
                self.discarded.insert(task);
                self.effects.kill(&|other| other == task);
            }
            TaskState::Done if !held => {
                self.ended.remove(&task);
                self.states.take_back(task);
                self.reopen(task);
            }
            _ => {}
        }
    }

    /// Takes back what was decided when a task was done: it writes its files again, perhaps with other content.
    fn reopen(&mut self, task: usize) {
        let graph = self.graph;
        let writes = &graph.steps[task].writes;
        let again = (graph.assumed.iter()).filter(|assumed| writes.contains(&assumed.file));
        self.open.extend(again);
    }

    /// Shows, in plan order, the tasks whose output no later event can change.
    pub fn show(&mut self, each: &mut dyn FnMut(&Finished)) {
        if self.open.is_empty() && !self.is_given_up() {
            self.show_in_order(each);
        }
    }

    /// Shows the tasks that count and were not shown yet, when no task runs any more.
    pub fn show_rest(&mut self, each: &mut dyn FnMut(&Finished)) {
        if self.on_failure == OnFailure::Stop {
            // If a command fails before the one that would have confirmed an assumption, its failure does not depend on the
            // assumption.
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

    /// The failed tasks that count; none if nvcc does the whole call again.
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
