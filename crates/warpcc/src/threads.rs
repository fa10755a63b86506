//! Works out which messages nvcc shows of a failing build under `--threads`, where that does not depend on timing.
//!
//! Seen on 13.5 with tools that log and wait: up to N commands run at once; after a failure those that run come to
//! their end, no other begins, and each one's messages appear as it ends. The exit code is 255 where a tool of NVIDIA's
//! failed. So the text is certain where only commands that surely ran printed anything; its order is a race.

use std::num::NonZero;
use std::thread::available_parallelism;

use warpcc_engine::failure::{LATER, phase};
use warpcc_engine::{Finished, StepOutcome};
use warpcc_plan::{TaskGraph, Tool};

/// nvcc's exit code after a failing build under `--threads`.
pub const EXIT_CODE: i32 = 255;

/// Whether nvcc, with this many threads (0: one for each processor), would have shown the same messages.
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
    // A preprocessor that fails leaves nvcc's own dependency filter and others without their files.
    if last_phase == 0
        || last_phase >= LATER
        || failed.iter().any(|task| phase_of(task) != last_phase)
    {
        return false;
    }
    let spoke = |task: &&Finished| !(task.stdout.is_empty() && task.stderr.is_empty());
    let mut behind = ancestors(graph, first.step);
    behind.push(first.step);
    let others: Vec<&Finished> = tasks
        .iter()
        .filter(|task| (has_failed(task) || spoke(task)) && !behind.contains(&task.step))
        .collect();
    if others.is_empty() {
        return true;
    }
    // Commands of one phase begin together where there are threads for all of them.
    let count = |tool| graph.steps.iter().filter(|step| step.tool == tool).count();
    let together = count(Tool::CudaFe) == 1
        && threads >= count(Tool::Preprocess)
        && threads >= count(Tool::Cicc);
    let sure_to_run = phase(Tool::Cicc);
    together && others.iter().all(|task| phase_of(task) <= sure_to_run)
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
