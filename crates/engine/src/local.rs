//! Runs a step on this machine, once it has a slot: writes its inputs, runs it, and stores its result.

use std::fs;
use std::io;
use std::time::{Instant, SystemTime};

use warpcc_cache::KeyVariants;
use warpcc_plan::{FileId, Step, Tool};
use warpcc_watch::PathText;

use crate::context::RunContext;
use crate::event::{Finished, StepOutcome};
use crate::folder_in_result;
use crate::key;
use crate::located::Located;
use crate::module_id;
use crate::mtimes;
use crate::prefix_map;
use crate::process::Ended;
use crate::queried_variables;
use crate::relocate;
use crate::slot_wait::{self, SlotWait};
use crate::splice;
use crate::store;
use crate::traced_inputs::TracedInputs;
use crate::warning_history;
use crate::watched_run;

/// Why a plan runs again with cicc in one piece.
pub const HALF_FAILED: &str = "a half of cicc failed";

/// Runs the step on this machine. It has its slot already.
pub fn run_here(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    keys: Option<&KeyVariants>,
    mut wait: SlotWait,
) -> io::Result<(Finished, TracedInputs)> {
    for &id in &step.reads {
        run.artifacts.materialise(id)?;
    }
    // A step that runs again writes them again: what is known of them from the last time is no longer true.
    for &id in &step.writes {
        run.artifacts.written(id);
    }
    relocate::show_real_names(run, step)?;
    let spliced = match step.tool {
        Tool::Assemble => Some(splice::splice(run, step)?),
        _ => None,
    };
    let (mut began, mut clock) = (SystemTime::now(), Instant::now());
    let (mut ended, mut seen) =
        watched_run::run_tool(run, index, step, program, spliced.as_ref(), &mut wait)?;
    while slot_wait::wait_again(run, index, &ended, &mut wait)? {
        (began, clock) = (SystemTime::now(), Instant::now());
        (ended, seen) =
            watched_run::run_tool(run, index, step, program, spliced.as_ref(), &mut wait)?;
    }
    settle_names(run, index, step, program, &mut ended, &mut wait)?;
    slot_wait::learn(run, step, &ended, clock.elapsed(), &mut wait);
    drop(wait.pass.take());
    if let Some(signal) = ended.signal {
        return Err(io::Error::other(format!("ended by signal {signal}")));
    }
    let is_silent = ended.stdout.is_empty() && ended.stderr.is_empty();
    if ended.code == 0 && step.tool == Tool::Assemble && !is_silent {
        return Err(io::Error::other(splice::SAID_SOMETHING));
    }
    if is_half_without_result(run, step, ended.code) {
        return Err(io::Error::other(HALF_FAILED));
    }
    let mut finished = Finished::new(
        index,
        if ended.code == 0 {
            StepOutcome::Ran
        } else {
            StepOutcome::Failed(ended.code)
        },
    );
    finished.user = ended.user;
    finished.system = ended.system;
    finished.peak_kib = ended.peak_kib;
    finished.waited = wait.waited;
    finished.waited_for = wait.waited_for;
    finished.retries = wait.retries;
    finished.stdout = ended.stdout;
    finished.stderr = ended.stderr;
    if ended.code == 0 {
        queried_variables::learn(run, step, program, &seen);
        warning_history::learn_messages(run, step, !finished.stderr.is_empty());
        for &id in &step.writes {
            run.artifacts.written(id);
        }
        seen.times = times(run, step, &seen);
        seen.asked.directory |= folder_in_result::is_named(run, step, &finished);
        let keys = keys.filter(|keys| read_what_is_in(run, keys, step, program));
        store::store_if_wanted(run, step, keys, &mut finished, &seen, began);
    }
    Ok((finished, seen))
}

/// Whether one of cicc's halves has failed. For a source with an error, the front end prints the error and ends with 0,
/// but writes no bitcode.
fn is_half_without_result(run: &RunContext<'_>, step: &Step, code: i32) -> bool {
    let is_half = step.is_front_end() || step.tool == Tool::Nvvm;
    let is_there = |&id: &FileId| run.artifacts.path(id).exists();
    is_half && (code != 0 || !step.writes.iter().all(is_there))
}

/// Whether a step that has run read the files that are in its key. A step that started on an assumption may have read the
/// corrected file, because the file is written before the step is ended.
fn read_what_is_in(
    run: &RunContext<'_>,
    keys: &KeyVariants,
    step: &Step,
    program: &Located,
) -> bool {
    let mut assumed = run.graph.assumed.iter();
    !assumed.any(|assumed| assumed.is_used_by(step))
        || key::keys_of(run, step, program).as_ref() == Some(keys)
}

/// Completes a run with a path map. Messages get the real names, preprocessed texts get the fixed names, and the module
/// id is replaced by one that is the same in the next run.
fn settle_names(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    ended: &mut Ended,
    wait: &mut SlotWait,
) -> io::Result<()> {
    let path_map = run.options.path_map;
    if path_map.is_empty() {
        return Ok(());
    }
    if ended.code == 0 && step.tool == Tool::Preprocess {
        for &id in &step.writes {
            relocate::rename_preprocessed(run.artifacts.path(id), run.graph, run.options)?;
        }
    }
    if ended.code == 0 && matches!(step.tool, Tool::CudaFe | Tool::Cicc) {
        give_lasting_module_id(run, index, step, program, ended, wait)?;
    }
    let host = matches!(step.tool, Tool::Preprocess | Tool::HostCompile);
    if ended.code != 0 && host && prefix_map::knows_no_map(&ended.stderr, path_map) {
        return Err(io::Error::other(prefix_map::NO_PREFIX_MAP));
    }
    ended.stdout = run.options.work_dir().real_message(&ended.stdout);
    ended.stderr = run.options.work_dir().real_message(&ended.stderr);
    Ok(())
}

/// Runs a front end again with a module id that does not contain its process id. The observations and messages of the first
/// run stay valid.
fn give_lasting_module_id(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    ended: &mut Ended,
    wait: &mut SlotWait,
) -> io::Result<()> {
    let written = |id: FileId| Some(run.artifacts.path(id));
    let Some((file, lasting)) = module_id::lasting_module_id(run, step, &written) else {
        return Ok(());
    };
    fs::write(run.artifacts.path(file), lasting)?;
    let mut reads_it = step.clone();
    reads_it
        .args
        .retain(|arg| arg.as_text() != Some(module_id::MAKES_MODULE_ID));
    let (second, seen) = watched_run::run_tool(run, index, &reads_it, program, None, wait)?;
    if second.code != 0 || second.signal.is_some() || seen.untracked.is_some() {
        return Err(io::Error::other(
            "a front end fails with the module id it was given",
        ));
    }
    ended.user += second.user;
    ended.system += second.system;
    Ok(())
}

/// The times of the files that `step` looked at to write their times into its result.
fn times(run: &RunContext<'_>, step: &Step, seen: &TracedInputs) -> Vec<u8> {
    match step.tool {
        // In 13.0, ptxas calls `stat` for every file that a `.file` directive names, and nvlink for those that LTO code
        // names. They open none of them.
        Tool::Ptxas | Tool::Nvlink => {
            let unopened = |path: &&PathText| !seen.read.contains_key(path.as_os_str());
            mtimes::of_files(seen.found.iter().filter(unopened), run.options.directory)
        }
        Tool::Cicc if step.has_debug_information() => {
            let ptx = step.writes.iter().map(|&id| run.artifacts.path(id));
            let ptx = ptx.filter(|path| path.extension().is_some_and(|e| e == "ptx"));
            ptx.filter_map(|path| fs::read(path).ok())
                .flat_map(|text| mtimes::of_ptx(&text, run.options.directory))
                .collect()
        }
        _ => Vec::new(),
    }
}
