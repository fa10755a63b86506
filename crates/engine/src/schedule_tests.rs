//! Tests the schedule with effects that are only written down: what runs next, what is ended, what is shown, and when the
//! run is given up.

use std::cell::{Cell, RefCell};

use warpcc_plan::{Tool, Transcript, overlap, prediction};

use super::*;

/// A dry run of one file for two architectures.
const TWO: &str = include_str!("../../plan/tests/transcripts/13.0/compile-two.txt");

/// Records the calls of its functions.
struct FakeRunner {
    confirms: Cell<bool>,
    corrects: Cell<bool>,
    corrected: RefCell<Vec<FileId>>,
    killed: RefCell<Vec<usize>>,
    tasks: usize,
}

impl FakeRunner {
    fn new(graph: &TaskGraph) -> Self {
        Self {
            confirms: Cell::new(true),
            corrects: Cell::new(true),
            corrected: RefCell::default(),
            killed: RefCell::default(),
            tasks: graph.steps.len(),
        }
    }
}

impl Effects for FakeRunner {
    fn confirms(&self, _: &Assumed) -> bool {
        self.confirms.get()
    }

    fn correct(&self, _: FileId, assumed: FileId) -> bool {
        self.corrected.borrow_mut().push(assumed);
        self.corrects.get()
    }

    fn kill(&self, which: &dyn Fn(usize) -> bool) {
        let tasks = (0..self.tasks).filter(|&task| which(task));
        self.killed.borrow_mut().extend(tasks);
    }
}

fn plan() -> TaskGraph {
    let transcript = Transcript::parse(TWO).expect("a dry run");
    let mut graph = TaskGraph::build(&transcript, "/keep/K/").expect("a plan");
    assert_eq!(overlap::split_host_compile(&mut graph, &|_| true), 1);
    graph
}

fn schedule<'a>(
    graph: &'a TaskGraph,
    runner: &'a FakeRunner,
    on_failure: OnFailure,
) -> Schedule<'a> {
    let states = TaskStates::new(graph, false, |_| 1);
    Schedule::new(graph, on_failure, states, runner)
}

/// The first, or last, step of a tool.
fn step_of(graph: &TaskGraph, tool: Tool) -> usize {
    let mut steps = graph.steps.iter();
    steps.position(|step| step.tool == tool).expect("a step")
}

fn last_of(graph: &TaskGraph, tool: Tool) -> usize {
    let mut steps = graph.steps.iter();
    steps.rposition(|step| step.tool == tool).expect("a step")
}

/// Starts all tasks that may start, and returns the running ones.
fn start_all(schedule: &mut Schedule<'_>) -> Vec<usize> {
    while schedule.start().is_some() {}
    running(schedule)
}

fn running(schedule: &Schedule<'_>) -> Vec<usize> {
    let tasks = 0..schedule.graph.steps.len();
    let runs = |&task: &usize| schedule.states().get(task) == TaskState::Running;
    tasks.filter(runs).collect()
}

fn ends(schedule: &mut Schedule<'_>, task: usize, outcome: StepOutcome) {
    assert_eq!(schedule.states().get(task), TaskState::Running, "{task}");
    schedule.ended(
        task,
        Ok((Finished::new(task, outcome), TracedInputs::default())),
    );
}

/// Ends running tasks with success until `task` runs. Those in `stay` keep running.
fn until_it_runs(schedule: &mut Schedule<'_>, task: usize, stay: &[usize]) {
    for _ in 0..1000 {
        let now = start_all(schedule);
        if now.contains(&task) {
            return;
        }
        let next = now.iter().find(|now| !stay.contains(now));
        ends(schedule, *next.expect("it never runs"), StepOutcome::Ran);
    }
    panic!("it never runs");
}

fn finish(schedule: &mut Schedule<'_>) {
    loop {
        let now = start_all(schedule);
        let Some(&task) = now.last() else { return };
        ends(schedule, task, StepOutcome::Ran);
    }
}

fn shown(schedule: &mut Schedule<'_>) -> Vec<usize> {
    let mut tasks = Vec::new();
    schedule.show(&mut |finished: &Finished| tasks.push(finished.step));
    tasks
}

#[test]
fn all_is_shown_in_the_plans_order() {
    let graph = plan();
    let runner = FakeRunner::new(&graph);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    let mut order = Vec::new();
    loop {
        let now = start_all(&mut schedule);
        // They end in reverse order: none is shown before those ahead of it.
        let Some(&task) = now.last() else { break };
        ends(&mut schedule, task, StepOutcome::Ran);
        order.extend(shown(&mut schedule));
    }
    let all: Vec<usize> = (0..graph.steps.len()).collect();
    assert_eq!(order, all);
    let end = schedule.end();
    assert_eq!(end.tasks.len(), all.len());
    assert!(end.retry.is_none() && end.abort_reason.is_none());
}

#[test]
fn the_first_failure_of_nvccs_order_counts() {
    let graph = plan();
    let runner = FakeRunner::new(&graph);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    let (first, second) = (step_of(&graph, Tool::Cicc), last_of(&graph, Tool::Cicc));
    assert!(first < second);
    until_it_runs(&mut schedule, first, &[]);
    until_it_runs(&mut schedule, second, &[first]);
    ends(&mut schedule, second, StepOutcome::Failed(2));
    // Later tasks are ended; the earlier one runs on, because it may fail as well.
    let killed = runner.killed.take();
    assert!(killed.iter().all(|&task| task > second), "{killed:?}");
    assert!(running(&schedule).contains(&first));
    assert_eq!(schedule.failures().collect::<Vec<_>>(), [second]);
    ends(&mut schedule, first, StepOutcome::Failed(1));
    assert_eq!(schedule.failures().collect::<Vec<_>>(), [first]);
    assert!(!schedule.counts(second));
    while let Some(&task) = start_all(&mut schedule).first() {
        ends(&mut schedule, task, StepOutcome::Ran);
    }
    let mut order = Vec::new();
    schedule.show_rest(&mut |finished: &Finished| order.push(finished.step));
    let until: Vec<usize> = (0..=first).collect();
    assert_eq!(order, until);
    assert_eq!(schedule.end().tasks.len(), until.len());
}

#[test]
fn under_threads_a_phase_runs_to_its_end() {
    let graph = plan();
    let runner = FakeRunner::new(&graph);
    let mut schedule = schedule(&graph, &runner, OnFailure::FinishPhase);
    let (first, second) = (step_of(&graph, Tool::Cicc), last_of(&graph, Tool::Cicc));
    until_it_runs(&mut schedule, first, &[]);
    until_it_runs(&mut schedule, second, &[first]);
    ends(&mut schedule, first, StepOutcome::Failed(2));
    assert!(!runner.killed.take().contains(&second));
    assert!(schedule.counts(second));
    assert!(
        shown(&mut schedule).is_empty(),
        "nvcc shows a phase at its end"
    );
    ends(&mut schedule, second, StepOutcome::Failed(2));
    assert_eq!(schedule.failures().collect::<Vec<_>>(), [first, second]);
    assert_eq!(schedule.start(), None);
    let mut order = Vec::new();
    schedule.show_rest(&mut |finished: &Finished| order.push(finished.step));
    assert!(order.ends_with(&[second]) && order.contains(&first));
}

#[test]
fn a_step_without_a_verdict_ends_the_run() {
    let graph = plan();
    for (error, aborts) in [
        ("no such tool", true),
        (LOST, false),
        (NOT_SPLICED, false),
        (SAID_SOMETHING, false),
    ] {
        let runner = FakeRunner::new(&graph);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        let (task, _) = schedule.start().expect("a task");
        schedule.ended(task, Err(io::Error::other(error)));
        let killed = runner.killed.take();
        assert!((0..graph.steps.len()).all(|task| killed.contains(&task)));
        assert_eq!(schedule.start(), None);
        schedule.show_rest(&mut |finished: &Finished| panic!("{finished:?} is shown"));
        assert_eq!(schedule.failures().count(), 0);
        let end = schedule.end();
        assert_eq!(end.abort_reason.is_some(), aborts);
        assert_eq!(end.retry, (!aborts).then_some(error));
    }
}

/// A plan whose ciccs work with the module id of an earlier run, cudafe++, and the ciccs.
fn plan_with_an_id() -> (TaskGraph, usize, usize, usize) {
    let mut graph = plan();
    prediction::predict_module_id(&mut graph, "_00000000_4_a_cu_12345678");
    assert_eq!(graph.assumed.len(), 1);
    let fe = step_of(&graph, Tool::CudaFe);
    let (first, second) = (step_of(&graph, Tool::Cicc), last_of(&graph, Tool::Cicc));
    (graph, fe, first, second)
}

#[test]
fn only_work_with_another_module_id_is_repeated() {
    let (graph, fe, first, second) = plan_with_an_id();
    for fails_early in [false, true] {
        let runner = FakeRunner::new(&graph);
        runner.confirms.set(false);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        until_it_runs(&mut schedule, fe, &[first, second]);
        until_it_runs(&mut schedule, first, &[fe, second]);
        until_it_runs(&mut schedule, second, &[fe, first]);
        if fails_early {
            ends(&mut schedule, first, StepOutcome::Failed(1));
            assert_eq!(schedule.failures().count(), 0, "the other id may be why");
        }
        ends(&mut schedule, fe, StepOutcome::Ran);
        assert_eq!(runner.corrected.take(), [graph.assumed[0].stand_in]);
        let killed = runner.killed.take();
        assert_eq!(killed.contains(&first), !fails_early);
        assert!(killed.contains(&second) && !killed.contains(&fe));
        for task in killed {
            ends(&mut schedule, task, StepOutcome::Failed(1));
        }
        for task in [first, second] {
            assert_eq!(schedule.states().get(task), TaskState::Ready);
        }
        finish(&mut schedule);
        let end = schedule.end();
        assert!(end.retry.is_none());
        assert_eq!(end.tasks.len(), graph.steps.len());
    }
}

#[test]
fn a_confirmed_module_id_repeats_nothing() {
    let (graph, _, _, _) = plan_with_an_id();
    let runner = FakeRunner::new(&graph);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    finish(&mut schedule);
    assert!(runner.corrected.take().is_empty() && runner.killed.take().is_empty());
    assert_eq!(schedule.end().retry, None);
}

#[test]
fn a_module_id_that_was_used_needs_another_plan() {
    let (graph, fe, first, _) = plan_with_an_id();
    let ptxas = step_of(&graph, Tool::Ptxas);
    for is_used in [false, true] {
        let runner = FakeRunner::new(&graph);
        runner.confirms.set(false);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        until_it_runs(&mut schedule, fe, &[first]);
        until_it_runs(&mut schedule, first, &[fe]);
        ends(&mut schedule, first, StepOutcome::Ran);
        assert_eq!(schedule.states().get(ptxas), TaskState::Ready);
        if is_used {
            until_it_runs(&mut schedule, ptxas, &[fe]);
        }
        ends(&mut schedule, fe, StepOutcome::Ran);
        if !is_used {
            assert_eq!(schedule.states().get(ptxas), TaskState::Waiting);
            assert_eq!(schedule.states().get(first), TaskState::Ready);
        }
        assert_eq!(schedule.end().retry, is_used.then_some(OTHER_ID));
    }
}

/// A plan whose host compile works on a stub of an earlier run, or on an announced one.
fn plan_with_a_stub(is_announced: bool) -> (TaskGraph, usize, usize) {
    let mut graph = plan();
    if is_announced {
        prediction::take_announced_stub(&mut graph);
    } else {
        prediction::predict_stub(&mut graph, "a stub");
    }
    assert_eq!(graph.assumed.len(), 1);
    let compile = step_of(&graph, Tool::HostAssembly);
    let real = graph.file(graph.assumed[0].file).writer.expect("cicc");
    (graph, compile, real)
}

#[test]
fn work_on_another_stub_is_repeated() {
    let (graph, compile, real) = plan_with_a_stub(false);
    for compiled_first in [true, false] {
        let runner = FakeRunner::new(&graph);
        runner.confirms.set(false);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        until_it_runs(&mut schedule, compile, &[real]);
        until_it_runs(&mut schedule, real, &[compile]);
        if compiled_first {
            ends(&mut schedule, compile, StepOutcome::Ran);
            assert!(shown(&mut schedule).is_empty(), "it may be done again");
        }
        ends(&mut schedule, real, StepOutcome::Ran);
        assert_eq!(runner.corrected.take().len(), 1);
        if !compiled_first {
            assert_eq!(runner.killed.take(), [compile]);
            // The output of the ended task is about the old text.
            ends(&mut schedule, compile, StepOutcome::Failed(1));
        }
        assert_eq!(schedule.states().get(compile), TaskState::Ready);
        finish(&mut schedule);
        let end = schedule.end();
        assert!(end.retry.is_none());
        assert_eq!(end.tasks[&compile].0.outcome, StepOutcome::Ran);
    }
}

#[test]
fn a_guess_that_fails_waits_for_the_truth() {
    let (graph, compile, real) = plan_with_a_stub(false);
    for confirms in [true, false] {
        let runner = FakeRunner::new(&graph);
        runner.confirms.set(confirms);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        until_it_runs(&mut schedule, compile, &[real]);
        ends(&mut schedule, compile, StepOutcome::Failed(1));
        assert_eq!(schedule.states().get(compile), TaskState::Waiting);
        assert_eq!(schedule.failures().count(), 0);
        until_it_runs(&mut schedule, real, &[]);
        ends(&mut schedule, real, StepOutcome::Ran);
        until_it_runs(&mut schedule, compile, &[]);
        ends(&mut schedule, compile, StepOutcome::Failed(1));
        assert_eq!(schedule.failures().collect::<Vec<_>>(), [compile]);
    }
}

#[test]
fn a_stub_that_cannot_be_corrected_needs_another_plan() {
    let (graph, compile, real) = plan_with_a_stub(false);
    let runner = FakeRunner::new(&graph);
    runner.confirms.set(false);
    runner.corrects.set(false);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    until_it_runs(&mut schedule, compile, &[real]);
    until_it_runs(&mut schedule, real, &[compile]);
    ends(&mut schedule, real, StepOutcome::Ran);
    assert_eq!(schedule.end().retry, Some(OTHER_STUB));
}

#[test]
fn the_host_compile_starts_when_its_stub_is_announced() {
    for confirms in [true, false] {
        let (graph, compile, real) = plan_with_a_stub(true);
        let stub = graph.assumed[0].file;
        let runner = FakeRunner::new(&graph);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        schedule.announced(stub);
        until_it_runs(&mut schedule, real, &[]);
        assert_eq!(schedule.states().get(compile), TaskState::Waiting);
        assert!(runner.corrected.take().is_empty(), "cicc does not run yet");
        schedule.announced(stub);
        assert_eq!(runner.corrected.take(), [graph.assumed[0].stand_in]);
        until_it_runs(&mut schedule, compile, &[real]);
        ends(&mut schedule, compile, StepOutcome::Ran);
        assert!(shown(&mut schedule).is_empty(), "it may be done again");
        runner.confirms.set(confirms);
        ends(&mut schedule, real, StepOutcome::Ran);
        assert_eq!(runner.corrected.take().is_empty(), confirms);
        let expected = match confirms {
            true => TaskState::Done,
            false => TaskState::Ready,
        };
        assert_eq!(schedule.states().get(compile), expected);
        runner.confirms.set(true);
        finish(&mut schedule);
        let end = schedule.end();
        assert!(end.retry.is_none());
        assert_eq!(end.tasks.len(), graph.steps.len());
    }
}

#[test]
fn a_stub_that_is_not_announced_counts_when_cicc_ends() {
    for outcome in [StepOutcome::Ran, StepOutcome::Hit] {
        let (graph, compile, real) = plan_with_a_stub(true);
        let runner = FakeRunner::new(&graph);
        // Nothing was assumed, so there is nothing to confirm.
        runner.confirms.set(false);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        until_it_runs(&mut schedule, real, &[]);
        ends(&mut schedule, real, outcome);
        assert_eq!(runner.corrected.take(), [graph.assumed[0].stand_in]);
        until_it_runs(&mut schedule, compile, &[]);
        assert!(runner.killed.take().is_empty());
        finish(&mut schedule);
        assert!(schedule.end().retry.is_none());
    }
}

#[test]
fn an_announced_stub_replaces_a_wrong_one_at_once() {
    let (graph, compile, real) = plan_with_a_stub(false);
    let stub = graph.assumed[0].file;
    let runner = FakeRunner::new(&graph);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    until_it_runs(&mut schedule, compile, &[real]);
    until_it_runs(&mut schedule, real, &[compile]);
    schedule.announced(stub);
    assert!(runner.killed.take().is_empty(), "it is the remembered one");
    runner.confirms.set(false);
    schedule.announced(stub);
    assert_eq!(runner.corrected.take(), [graph.assumed[0].stand_in]);
    assert_eq!(runner.killed.take(), [compile]);
    ends(&mut schedule, compile, StepOutcome::Failed(1));
    assert_eq!(schedule.states().get(compile), TaskState::Ready);
    runner.confirms.set(true);
    finish(&mut schedule);
    let end = schedule.end();
    assert!(end.retry.is_none());
    assert_eq!(end.tasks[&compile].0.outcome, StepOutcome::Ran);
}

#[test]
fn an_announced_stub_that_cannot_be_copied_is_waited_for() {
    let (graph, compile, real) = plan_with_a_stub(true);
    let runner = FakeRunner::new(&graph);
    runner.corrects.set(false);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    until_it_runs(&mut schedule, real, &[]);
    schedule.announced(graph.assumed[0].file);
    assert_eq!(schedule.states().get(compile), TaskState::Waiting);
    runner.corrects.set(true);
    ends(&mut schedule, real, StepOutcome::Ran);
    until_it_runs(&mut schedule, compile, &[]);
    finish(&mut schedule);
    assert!(schedule.end().retry.is_none());
}

/// cicc is done before cudafe++, and its module id was wrong. So it runs again, and its first stub decides nothing.
#[test]
fn a_stub_with_a_wrong_module_id_is_not_confirmed() {
    for is_announced in [true, false] {
        let (mut graph, compile, real) = plan_with_a_stub(is_announced);
        prediction::predict_module_id(&mut graph, "_00000000_4_a_cu_12345678");
        let (stub, id) = (&graph.assumed[0], &graph.assumed[1]);
        let (fe, first) = (step_of(&graph, Tool::CudaFe), step_of(&graph, Tool::Cicc));
        let runner = FakeRunner::new(&graph);
        let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
        until_it_runs(&mut schedule, real, &[fe, first]);
        until_it_runs(&mut schedule, fe, &[real, first]);
        schedule.announced(stub.file);
        ends(&mut schedule, real, StepOutcome::Ran);
        runner.corrected.take();
        runner.confirms.set(false);
        ends(&mut schedule, fe, StepOutcome::Ran);
        assert_eq!(runner.corrected.take(), [id.stand_in]);
        // The host compile may be faster than cicc.
        until_it_runs(&mut schedule, compile, &[]);
        until_it_runs(&mut schedule, real, &[compile]);
        ends(&mut schedule, compile, StepOutcome::Ran);
        assert!(shown(&mut schedule).is_empty(), "it may be done again");
        ends(&mut schedule, real, StepOutcome::Ran);
        assert_eq!(runner.corrected.take(), [stub.stand_in]);
        assert_eq!(schedule.states().get(compile), TaskState::Ready);
        finish(&mut schedule);
        assert!(schedule.end().retry.is_none());
    }
}

#[test]
fn a_step_that_could_not_start_is_next_again() {
    let graph = plan();
    let runner = FakeRunner::new(&graph);
    let mut schedule = schedule(&graph, &runner, OnFailure::Stop);
    let first = schedule.start().expect("a task");
    schedule.put_back(first.0);
    assert_eq!(schedule.start(), Some(first));
}
