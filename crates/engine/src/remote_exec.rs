//! Runs a step on another machine: packs the step's files, puts the outputs where the tool here would have written them, and
//! stores the result under the step's own key.
//!
//! Our folder there has a name that occurs nowhere else ([`names::MARK`]). A result that contains it contains a path of that
//! machine. Unless the path that a local run would have written is known, the result is thrown away and the step runs here.
//!
//! [`crate::placement`] decides where a step would end sooner; [`action`] packs a step, with [`builder`] for what all tools
//! need, and [`host`], [`clang`] and [`link`] for tools that search for files themselves; [`race`] also runs a late step
//! here; [`results`] takes in the outputs.

mod action;
mod builder;
mod clang;
mod compiler;
mod host;
mod link;
mod names;
mod race;
mod results;

use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

use warpcc_budget::PoolSlot;
use warpcc_cache::KeyVariants;
use warpcc_plan::{Arg, Step, Tool};

use builder::Packed;
use race::{AT_ONCE, Race};

use crate::admission;
use crate::context::RunContext;
use crate::event::{Finished, StepOutcome};
use crate::executor::{Executor, RemoteJob};
use crate::key::packs_directory;
use crate::located::Located;
use crate::module_id::MAKES_MODULE_ID;
use crate::placement::{Placement, choose};
use crate::queried_variables;
use crate::relocate;
use crate::slot_wait::{self, SlotWait};
use crate::store;
use crate::traced_inputs::TracedInputs;
use crate::warning_history;

/// How often a step that waits for a slot here checks whether it would end sooner on another machine.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Runs `step` on another machine, if one takes it and it ends sooner there. `None` means that it must run here; `wait` then
/// holds the slot, if slots are limited.
///
/// # Errors
/// The same errors as a run here.
pub fn run_elsewhere(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    keys: Option<&KeyVariants>,
    priority_ms: u64,
    wait: &mut SlotWait,
) -> io::Result<Option<(Finished, TracedInputs)>> {
    let Some(executor) = run.options.executor.filter(|e| e.takes(step.tool)) else {
        return Ok(None);
    };
    if !may_run_elsewhere(run, step) || warning_history::is_likely_to_warn(run, step) {
        return Ok(None);
    }
    // The watch library does not run there: the variables that this tool asks for must be known.
    let Some(asked) = queried_variables::variables(run, step, program) else {
        return Ok(None);
    };
    let Some(_slot) = slot_elsewhere(run, index, step, program, priority_ms, executor, wait)?
    else {
        return Ok(None);
    };
    if run.options.children.is_closed() {
        return Err(io::Error::other("interrupted"));
    }
    let began = SystemTime::now();
    for &id in &step.reads {
        run.artifacts.materialise(id)?;
    }
    relocate::show_real_names(run, step)?;
    let folder = run.options.scratch.join(format!("away-{index}"));
    // If packing fails, the step runs here.
    let packed = fs::create_dir_all(&folder)
        .ok()
        .and_then(|()| action::pack(run, index, step, program, &folder))
        .filter(|packed| {
            !queried_variables::misses_one(run, step, &asked, &packed.command.environment)
        });
    let Some(packed) = packed else {
        drop(fs::remove_dir_all(&folder));
        return Ok(None);
    };
    let Packed {
        command,
        mut seen,
        names,
    } = packed;
    seen.asked.variables.extend(asked);
    let job = RemoteJob {
        tool: step.tool,
        command,
        folder: &folder,
    };
    let race = race::race(run, index, step, program, keys, priority_ms, executor, &job)?;
    let done = match race {
        Race::Local(done) => return Ok(Some(*done)),
        Race::Nobody => None,
        Race::Remote(done) => {
            let streams = results::take_in(run, step, &done, &names);
            streams.map(|streams| (done, streams))
        }
    };
    drop(fs::remove_dir_all(&folder));
    let Some((done, (stdout, stderr))) = done else {
        return Ok(None);
    };
    let mut finished = Finished::new(index, StepOutcome::Ran);
    finished.is_remote = true;
    finished.waited = wait.waited;
    finished.user = done.busy;
    finished.stdout = run.options.work_dir().real_message(&stdout);
    finished.stderr = run.options.work_dir().real_message(&stderr);
    store::store_if_wanted(run, step, keys, &mut finished, &seen, began);
    Ok(Some((finished, seen)))
}

/// Waits until the step may run on this machine, or would end sooner on another one. In the second case it returns the slot
/// there.
fn slot_elsewhere(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    priority_ms: u64,
    executor: &dyn Executor,
    wait: &mut SlotWait,
) -> io::Result<Option<PoolSlot>> {
    if executor.is_preferred() {
        return Ok(executor.slots().take());
    }
    let Some(admission) = run.options.admission else {
        return Ok(None);
    };
    if !admission.board().is_shared() {
        // The machine's queue is not known. If no slot is free at once, the step may go.
        let at_once =
            slot_wait::wait_for_slot_within(run, index, step, priority_ms, wait, Some(AT_ONCE));
        return match at_once {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(executor.slots().take()),
            other => other.map(|()| None),
        };
    }
    let bytes: u64 = step.reads.iter().map(|&id| run.artifacts.size(id)).sum();
    let name = admission::name_of(step, run.graph);
    let expected = admission.expect(&name, admission::kind_of(step.tool), bytes);
    let ends_sooner_there = || {
        let here = admission.local_load(priority_ms);
        if here.idle > 0 || !executor.takes(step.tool) {
            return false;
        }
        let digest = run.lasting_digest(&program.path);
        digest.is_some_and(|digest| {
            let mut there = executor.estimate(&digest);
            if executor.has(step.tool) {
                there.tool_bytes = 0;
            }
            choose(expected.millis, bytes, &here, &there) == Placement::Remote
        })
    };
    loop {
        if ends_sooner_there()
            && let Some(slot) = executor.slots().take()
        {
            return Ok(Some(slot));
        }
        match slot_wait::wait_for_slot_within(run, index, step, priority_ms, wait, Some(LOOK_AGAIN))
        {
            Ok(()) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
        if run.options.children.is_closed() {
            return Err(io::Error::other("interrupted"));
        }
    }
}

/// Whether the step's result is the same on every machine. Debug information contains folders of the machine.
fn may_run_elsewhere(run: &RunContext<'_>, step: &Step) -> bool {
    let takes_part = match step.tool {
        Tool::Ptxas
        | Tool::Cicc
        | Tool::Fatbinary
        | Tool::CudaFe
        | Tool::Nvlink
        | Tool::HostCompile
        | Tool::HostAssembly => true,
        // Assembling takes less time than sending the text.
        Tool::Preprocess
        | Tool::Nvvm
        | Tool::Clang
        | Tool::Assemble
        | Tool::HostLink
        | Tool::Archive
        | Tool::FilterDependencies => false,
    };
    let makes_id = |arg: &Arg| arg.as_text() == Some(MAKES_MODULE_ID);
    // In LTO and OptiX code, an id that was made with a process id is not visible.
    let hides_id = packs_directory(step, run.graph) && step.args.iter().any(makes_id);
    takes_part
        && !step.is_front_end()
        && !run.graph.private.is_empty()
        && !step.has_debug_information()
        && !hides_id
        // A library that is loaded into every process exists only on this machine.
        && run.options.variable("LD_PRELOAD").is_none_or(|v| v.is_empty())
}
