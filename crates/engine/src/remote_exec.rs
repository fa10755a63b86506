//! A step on another machine: what it needs is packed, what it wrote is put where the tool here would have written it, and
//! the result is stored under the step's own key.
//!
//! Everything of ours has one unmistakable name there ([`names::MARK`]). A result that holds it holds a path of that
//! machine: unless we know the name in a local run, the result is thrown away and the step runs here.
//!
//! [`crate::placement`] says where a step ends sooner; [`action`] packs, with [`builder`] for what all tools need and
//! [`host`], [`clang`] and [`link`] for those that find files for themselves; [`race`] runs a late one here as well;
//! [`results`] takes in what came.

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
use crate::asked_history;
use crate::context::RunContext;
use crate::event::{Finished, StepOutcome};
use crate::executor::{Executor, RemoteJob};
use crate::key::packs_directory;
use crate::locate::Located;
use crate::module_id::MAKES_MODULE_ID;
use crate::placement::{Placement, choose};
use crate::relocate;
use crate::slot_wait::{self, SlotWait};
use crate::store;
use crate::traced_inputs::Seen;
use crate::warning_history;

/// A step that waits for a slot here thinks again so often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Has `step` run on another machine, if one takes it and it ends sooner there. Nothing when it is
/// to run here; `wait` then holds the slot, if there was one.
///
/// # Errors
/// As a run here.
pub fn run_elsewhere(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    keys: Option<&KeyVariants>,
    priority_ms: u64,
    wait: &mut SlotWait,
) -> io::Result<Option<(Finished, Seen)>> {
    let Some(executor) = run.options.executor.filter(|e| e.takes(step.tool)) else {
        return Ok(None);
    };
    if !may_leave(run, step) || warning_history::is_likely_to_warn(run, step) {
        return Ok(None);
    }
    // Requests are not observed there: the variables that this tool asks for have to be known.
    let Some(asked) = asked_history::variables(run, step, program) else {
        return Ok(None);
    };
    let Some(_slot) = leave(run, index, step, program, priority_ms, executor, wait)? else {
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
    // Whatever hinders packing hinders nothing here.
    let packed = fs::create_dir_all(&folder)
        .ok()
        .and_then(|()| action::pack(run, index, step, program, &folder))
        .filter(|packed| {
            !asked_history::misses_one(run, step, &asked, &packed.command.environment)
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
    finished.away = true;
    finished.waited = wait.waited;
    finished.user = done.busy;
    finished.stdout = run.options.work_dir().real_message(&stdout);
    finished.stderr = run.options.work_dir().real_message(&stderr);
    store::keep_if_wanted(run, step, keys, &mut finished, &seen, began);
    Ok(Some((finished, seen)))
}

/// Waits until the step may run on this machine, or would end sooner on another one: then it gives the slot there.
fn leave(
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
        // Waiting jobs are not known: a slot that is not there at once is not free.
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

/// Whether the step's result is the same from everywhere. Debug information holds folders of the machine.
fn may_leave(run: &RunContext<'_>, step: &Step) -> bool {
    let takes_part = match step.tool {
        Tool::Ptxas
        | Tool::Cicc
        | Tool::Fatbinary
        | Tool::CudaFe
        | Tool::Nvlink
        | Tool::HostCompile
        | Tool::HostAssembly => true,
        // The assembler's own part is shorter than the way of its text.
        Tool::Preprocess
        | Tool::EarlyStub
        | Tool::Assemble
        | Tool::HostLink
        | Tool::Archive
        | Tool::FilterDependencies => false,
    };
    let makes_id = |arg: &Arg| arg.as_text() == Some(MAKES_MODULE_ID);
    // In LTO and OptiX code an id is not visible that was made with a process id.
    let hides_id = packs_directory(step, run.graph) && step.args.iter().any(makes_id);
    takes_part
        && !run.graph.private.is_empty()
        && !step.has_debug_information()
        && !hides_id
        // A library that is loaded into every process belongs to this machine.
        && run.options.variable("LD_PRELOAD").is_none_or(|v| v.is_empty())
}
