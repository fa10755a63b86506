//! Carries out one ready task: takes its result from the cache, or runs it on another machine or here.

use std::fs;
use std::io;
use std::path::PathBuf;

use warpcc_plan::{FileKind, Program, Step, depfile};

use crate::any_lines;
use crate::context::RunContext;
use crate::event::{Finished, StepOutcome};
use crate::key;
use crate::local;
use crate::locate;
use crate::located::Located;
use crate::lookup;
use crate::relocate;
use crate::remote_exec;
use crate::slot_wait::{self, SlotWait};
use crate::traced_inputs::TracedInputs;
use crate::unwatched_inputs;

/// Carries out the task.
///
/// # Errors
/// An error of warpcc, not of the tool: a file cannot be read or written, or a program cannot be started.
pub fn work(
    run: &RunContext<'_>,
    index: usize,
    priority_ms: u64,
) -> io::Result<(Finished, TracedInputs)> {
    let step = &run.graph.steps[index];
    let started = run.clock.elapsed();
    let mut done = if step.program == Program::Internal {
        filter_dependencies(run, index, step)?
    } else {
        command(run, index, step, priority_ms)?
    };
    done.0.started = started;
    done.0.finished = run.clock.elapsed();
    done.0.files = step
        .writes
        .iter()
        .map(|&id| {
            (
                id.0 as usize,
                fs::metadata(run.artifacts.path(id)).ok().map(|m| m.len()),
            )
        })
        .collect();
    Ok(done)
}

/// The user's old file with the name of a failing step's output. Under nvcc the step would have found it; here it looked in
/// our folder and did not.
pub fn unmet_output(run: &RunContext<'_>, index: usize) -> Option<PathBuf> {
    let step = run.graph.steps.get(index)?;
    let mut outputs = step.writes.iter().filter(|&&id| {
        let own = run.artifacts.path(id);
        run.graph.file(id).kind == FileKind::Output
            && run.side_files.has_missed(index, own)
            && !run.side_files.has_removed(index, own)
    });
    let users = |&id| run.options.directory.join(&run.graph.file(id).path);
    outputs
        .find(|&id| fs::symlink_metadata(users(id)).is_ok())
        .map(users)
}

/// Removes the user's old files that a failing step would have removed under nvcc.
pub fn take_away_outputs(run: &RunContext<'_>, index: usize) {
    let step = run.graph.steps.get(index);
    let writes = step.into_iter().flat_map(|step| &step.writes);
    let outputs = writes.filter(|&&id| run.graph.file(id).kind == FileKind::Output);
    for &id in outputs.filter(|&&id| run.side_files.has_removed(index, run.artifacts.path(id))) {
        (run.options.remove)(&run.graph.file(id).path);
    }
}

fn command(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    priority_ms: u64,
) -> io::Result<(Finished, TracedInputs)> {
    let program = locate::locate(run, index, step)?;
    for path in &step.removes {
        (run.options.remove)(path);
    }
    let (mut finished, mut seen) = find_or_make(run, index, step, &program, priority_ms)?;
    any_lines::check(run, step, &finished)?;
    finished
        .stderr
        .splice(0..0, program.messages.iter().copied());
    seen.merge(&program.seen);
    // The step's key contains the program's path and content. Only the record of the call needs to know how the program was
    // found.
    unwatched_inputs::add_program(run, step, &program, &mut seen);
    Ok((finished, seen))
}

fn find_or_make(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    priority_ms: u64,
) -> io::Result<(Finished, TracedInputs)> {
    let keys = key::keys_of(run, step, program);
    if let Some(keys) = keys.as_ref().filter(|_| run.options.reads_cache)
        && let Some((mut finished, seen)) = lookup::look_up(run, index, step, keys)
    {
        run.count_own_result(&keys.keys(), &mut finished);
        return Ok((finished, seen));
    }
    let mut wait = SlotWait::default();
    let done = remote_exec::run_elsewhere(
        run,
        index,
        step,
        program,
        keys.as_ref(),
        priority_ms,
        &mut wait,
    )?;
    if let Some((mut finished, seen)) = done {
        if let Some(keys) = keys.filter(|_| finished.is_remote) {
            finished.fetched_keys = keys.keys();
        }
        return Ok((finished, seen));
    }
    if wait.pass.is_none() {
        slot_wait::wait_for_slot(run, index, step, priority_ms, &mut wait)?;
    }
    let (finished, seen) = local::run_here(run, index, step, program, keys.as_ref(), wait)?;
    if let Some(keys) = keys {
        run.note_made(keys.keys(), &finished);
    }
    Ok((finished, seen))
}

fn filter_dependencies(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
) -> io::Result<(Finished, TracedInputs)> {
    let rule = run
        .options
        .rule
        .as_ref()
        .ok_or_else(|| io::Error::other("an unexpected dependency file"))?;
    let mut texts = Vec::new();
    for &id in &step.reads {
        run.artifacts.materialise(id)?;
        let path = run.artifacts.path(id);
        let markers = relocate::markers_path(path);
        texts.push(if run.options.path_map.is_empty() {
            fs::read(path)?
        } else {
            fs::read(markers)?
        });
    }
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let rule = depfile::rule(rule, &texts);
    let rule = rule.map_err(io::Error::other)?;
    for &id in &step.writes {
        fs::write(run.artifacts.path(id), &rule)?;
        run.artifacts.written(id);
    }
    Ok((
        Finished::new(index, StepOutcome::Ran),
        TracedInputs::default(),
    ))
}
