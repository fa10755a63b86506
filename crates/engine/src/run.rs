//! Runs a graph: gives the tasks that `schedule` chooses to threads, and collects their results.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

use warpcc_plan::assumed::Assumed;
use warpcc_plan::{FileId, TaskGraph};

use crate::admission;
use crate::announcement::Announcement;
use crate::any_lines;
use crate::artifact::Artifacts;
use crate::context::RunContext;
use crate::event::{Finished, StepOutcome};
use crate::options::{Order, RunOptions};
use crate::process::Children;
use crate::schedule::{Effects, End, Schedule};
use crate::states::TaskStates;
use crate::task;
use crate::traced_inputs::TracedInputs;

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// nvcc's exit code.
    pub code: i32,
    /// Every task, in plan order.
    pub tasks: Vec<Finished>,
    /// Everything that the tasks saw; a hit counts with what its task saw when it ran.
    pub seen: TracedInputs,
    /// When the first command was started.
    pub began: SystemTime,
    /// Final outputs: their current paths and their destinations.
    pub outputs: Vec<(PathBuf, PathBuf)>,
    /// Why the plan has to run again without overlaps: a prediction was wrong. Nothing was put in place.
    pub retry: Option<&'static str>,
    /// Why the run was given up, for example because a tool ended by a signal or could not be started. This is no result of
    /// the compiler, so plain nvcc has to carry out the call.
    pub abort_reason: Option<String>,
    /// The user's old output, if a failing step looked for it. The step did not find it, because its output is in the
    /// scratch folder.
    pub unmet_output: Option<PathBuf>,
    /// A file besides the outputs that a command changed, or would have changed before its turn.
    pub changed_file: Option<PathBuf>,
}

/// Milliseconds that a task will take, waiting not counted.
fn expected(graph: &TaskGraph, options: &RunOptions<'_>, task: usize) -> u64 {
    let step = &graph.steps[task];
    let kind = admission::kind_of(step.tool);
    match options.admission {
        Some(admission) => {
            let name = admission::name_of(step, graph);
            admission.expect(&name, kind, 0).millis
        }
        None => kind.usual_millis(),
    }
}

/// Does a task. A panic is a bug in warpcc. It becomes an error, so that the run is given up and plain nvcc carries out the call.
fn work_or_report(
    context: &RunContext<'_>,
    task: usize,
    priority: u64,
) -> std::io::Result<(Finished, TracedInputs)> {
    // After a panic the run is given up, so nobody reads what the task left half done.
    let work = std::panic::AssertUnwindSafe(|| task::work(context, task, priority));
    std::panic::catch_unwind(work).unwrap_or_else(|_| Err(std::io::Error::other("a bug in warpcc")))
}

/// Runs `graph`; `each` gets the tasks in plan order as soon as everything before them is done,
/// to show their diagnostics.
pub fn execute(
    graph: &TaskGraph,
    options: &RunOptions<'_>,
    each: &mut dyn FnMut(&Finished),
) -> Run {
    let began = SystemTime::now();
    let results = (!graph.private.is_empty()).then(|| options.scratch.join("out"));
    let artifacts = Artifacts::new(graph, options.store, options.directory, results.as_deref());
    let announcement = Announcement::expect(graph, &artifacts, options);
    let context = RunContext::new(graph, options, &artifacts, announcement.as_ref());
    let effects = OnFiles {
        artifacts: &artifacts,
        children: options.children,
    };
    let expected = |task: usize| expected(graph, options, task);
    let in_plan_order = options.order == Order::Sequential;
    let states = TaskStates::new(graph, in_plan_order, expected);
    let mut schedule = Schedule::new(graph, options.on_failure, states, &effects);
    if let Err(error) = artifacts.prepare() {
        schedule.give_up(error.to_string());
    }
    run_all(&context, &mut schedule, each);
    context.side_files.remove_private_names(options.scratch);
    let mut unmet_output = None;
    for failed in schedule.failures() {
        unmet_output = unmet_output.or_else(|| task::unmet_output(&context, failed));
        task::take_away_outputs(&context, failed);
    }
    schedule.show_rest(each);
    let mut run = collect(graph, &artifacts, schedule.end(), began);
    run.unmet_output = unmet_output;
    run.changed_file = context.side_files.changed();
    let is_well = run.code == 0 && run.retry.is_none() && run.abort_reason.is_none();
    if is_well && run.seen.is_of_compilers(&context.known) {
        any_lines::share(&context, &run.tasks);
    }
    if let Some(admission) = options
        .admission
        .filter(|_| run.code == 0 && run.retry.is_none())
    {
        // The time that the run would take on an idle machine; measured for tasks that ran.
        let took = |task: usize| match run.tasks[task].outcome {
            StepOutcome::Ran => run.tasks[task].busy_millis(),
            _ => expected(task),
        };
        admission.learn_whole(TaskStates::new(graph, false, took).longest());
    }
    run
}

/// The schedule's effects on files and processes.
struct OnFiles<'a> {
    artifacts: &'a Artifacts<'a>,
    children: &'a Children,
}

impl Effects for OnFiles<'_> {
    fn confirms(&self, assumed: &Assumed) -> bool {
        self.artifacts.confirms(assumed).unwrap_or(false)
    }

    fn correct(&self, actual: FileId, assumed: FileId) -> bool {
        self.artifacts.correct(actual, assumed).is_ok()
    }

    fn kill(&self, which: &dyn Fn(usize) -> bool) {
        self.children.kill(which);
    }
}

/// Gives each ready task to a thread, and each result to the schedule, until nothing runs any more.
fn run_all(context: &RunContext<'_>, schedule: &mut Schedule<'_>, each: &mut dyn FnMut(&Finished)) {
    let options = context.options;
    // Steps on other machines do not count against what may run here.
    let remote_slots = options.executor.map_or(0, |e| e.slots().size());
    let jobs = options.jobs.max(1).saturating_add(remote_slots);
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        let mut running = 0;
        // The thread ends when this channel is closed, at the end of the loop.
        let _memory_watch = options.admission.map(|admission| {
            let (keep_open, done) = mpsc::channel();
            let (board, children) = (admission.board(), options.children);
            let watch = move || admission::watch_memory(board, children, &done);
            // If the thread cannot be started, this call's tools are not ended when memory runs short.
            drop(thread::Builder::new().spawn_scoped(scope, watch));
            keep_open
        });
        let _hearing = context.announcement.map(|announcement| {
            let sender = send.clone();
            let hear = move || {
                announcement.hear(|| {
                    let _ = sender.send(News::Announced(announcement.file));
                });
            };
            // Without the thread, the file counts at the end of its step.
            drop(thread::Builder::new().spawn_scoped(scope, hear));
            announcement.until_dropped()
        });
        loop {
            while running < jobs
                && let Some((task, priority)) = schedule.start()
            {
                running += 1;
                let sender = send.clone();
                let work = move || {
                    let result = work_or_report(context, task, priority);
                    // The receiver outlives every worker: it counts them.
                    let _ = sender.send(News::Ended(task, Box::new(result)));
                };
                if thread::Builder::new().spawn_scoped(scope, work).is_ok() {
                    continue;
                }
                // No more threads can be started. The task waits until a thread of this run has ended. If there is none, it is
                // done on this thread.
                if running > 1 {
                    running -= 1;
                    schedule.put_back(task);
                    break;
                }
                let _ = send.send(News::Ended(
                    task,
                    Box::new(work_or_report(context, task, priority)),
                ));
            }
            if running == 0 {
                break;
            }
            if let Some(listener) = options.listener {
                listener(context.graph, schedule.states());
            }
            match receive.recv() {
                Ok(News::Ended(task, result)) => {
                    running -= 1;
                    schedule.ended(task, *result);
                    schedule.show(each);
                }
                Ok(News::Announced(file)) => schedule.announced(file),
                Err(_) => break,
            }
        }
    });
}

/// What the thread that schedules learns from the others.
enum News {
    /// A task has ended.
    Ended(usize, Box<std::io::Result<(Finished, TracedInputs)>>),
    /// A task that is still running has written this file.
    Announced(FileId),
}

/// Collects the results of the run.
fn collect(graph: &TaskGraph, artifacts: &Artifacts<'_>, mut end: End, began: SystemTime) -> Run {
    let mut run = Run {
        code: 0,
        tasks: Vec::with_capacity(graph.steps.len()),
        seen: TracedInputs::default(),
        began,
        outputs: Vec::new(),
        retry: end.retry,
        abort_reason: end.abort_reason,
        unmet_output: None,
        changed_file: None,
    };
    if run.retry.is_some() {
        return run;
    }
    for (i, step) in graph.steps.iter().enumerate() {
        let finished = match end.tasks.remove(&i) {
            Some((finished, seen)) => {
                run.seen.merge(&seen);
                finished
            }
            None => Finished::new(i, StepOutcome::Skipped),
        };
        match &finished.outcome {
            StepOutcome::Failed(code) => run.code = *code,
            StepOutcome::Ran | StepOutcome::Hit => {
                for &id in step.writes.iter().filter(|&&id| artifacts.is_elsewhere(id)) {
                    run.outputs.push((
                        artifacts.path(id).to_owned(),
                        PathBuf::from(&graph.file(id).path),
                    ));
                }
            }
            StepOutcome::Skipped => {}
        }
        run.tasks.push(finished);
    }
    run
}
