//! Finds out whether it is certain which messages nvcc prints, and which files it leaves, when a build fails under `--threads`.
//!
//! Seen on 13.5 with tools that log and wait: nvcc runs up to N commands at once. After a failure, the commands that run go on
//! to their end, and no other one starts. nvcc prints the messages of each command when it ends, so their order depends on
//! timing. The exit code is 255 if a tool of NVIDIA's failed. So the messages are certain if every command that printed
//! something was sure to run. The files are certain if each output is of a command that was sure not to run, and none is
//! removed before it is made.

use std::num::NonZero;
use std::thread::available_parallelism;

use warpcc_engine::failure::{LATER, phase};
use warpcc_engine::{Finished, StepOutcome};
use warpcc_plan::{FileId, FileKind, TaskGraph, Tool};

/// nvcc's exit code after a failing build under `--threads`.
pub const EXIT_CODE: i32 = 255;

/// Whether nvcc, with this many threads (0: one for each processor), would have printed the messages of the same commands, and
/// left the same files.
pub fn is_certain(graph: &TaskGraph, tasks: &[Finished], threads: usize) -> bool {
    let threads = match threads {
        0 => available_parallelism().map_or(1, NonZero::get),
        some => some,
    };
    let phase_of = |task: &Finished| phase(graph.steps[task.step].tool);
    let has_failed = |task: &&Finished| matches!(task.outcome, StepOutcome::Failed(_));
    let failed: Vec<&Finished> = tasks.iter().filter(has_failed).collect();
    let Some(first) = failed.first() else {
        return false;
    };
    let last_phase = phase_of(first);
    // After a failed preprocessor, other commands fail because they lack its output.
    if last_phase == 0
        || last_phase >= LATER
        || failed.iter().any(|task| phase_of(task) != last_phase)
        || leaves_files_by_chance(graph, first.step)
    {
        return false;
    }
    let has_messages = |task: &&Finished| !(task.stdout.is_empty() && task.stderr.is_empty());
    let mut before_failure = ancestors(graph, first.step);
    before_failure.push(first.step);
    let others: Vec<&Finished> = tasks
        .iter()
        .filter(|task| {
            (has_failed(task) || has_messages(task)) && !before_failure.contains(&task.step)
        })
        .collect();
    if others.is_empty() {
        return true;
    }
    // Commands of one phase start at the same time if there are threads for all of them.
    let count = |tool| graph.steps.iter().filter(|step| step.tool == tool).count();
    let start_together = count(Tool::CudaFe) == 1
        && threads >= count(Tool::Preprocess)
        && threads >= count(Tool::Cicc);
    let sure_to_run = phase(Tool::Cicc);
    start_together && others.iter().all(|task| phase_of(task) <= sure_to_run)
}

/// Whether nvcc may leave or remove an output, by the time that its commands took: the output of another source, or an archive,
/// which is removed before it is made. Commands of an earlier phase than the failed one have run.
fn leaves_files_by_chance(graph: &TaskGraph, failed: usize) -> bool {
    let is_output = |&id: &FileId| graph.file(id).kind == FileKind::Output;
    let mut steps = graph.steps.iter().enumerate();
    steps.any(|(at, step)| {
        let needs_failed = || at == failed || ancestors(graph, at).contains(&failed);
        let may_run = || phase(step.tool) >= phase(graph.steps[failed].tool) && !needs_failed();
        !step.removes.is_empty() || step.writes.iter().any(is_output) && may_run()
    })
}

/// All steps that a step needs, directly or through others.
fn ancestors(graph: &TaskGraph, step: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut open = vec![step];
    while let Some(next) = open.pop() {
        for &need in graph.needs(next) {
            if !found.contains(&need) {
                found.push(need);
                open.push(need);
            }
        }
    }
    found
}
