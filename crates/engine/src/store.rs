//! Stores a step's result in the cache.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use warpcc_cache::{KeyVariants, Level, Outcome, Packing, ProducedFile};
use warpcc_plan::{Arg, Step, Tool};

use crate::conditions::Conditions;
use crate::context::RunContext;
use crate::event::Finished;
use crate::folder_in_inputs;
use crate::modes;
use crate::module_id;
use crate::relocate;
use crate::traced_inputs::TracedInputs;

/// Stores the result of a success, where results are stored.
pub fn store_if_wanted(
    run: &RunContext<'_>,
    step: &Step,
    keys: Option<&KeyVariants>,
    finished: &mut Finished,
    seen: &TracedInputs,
    began: SystemTime,
) {
    let Some(keys) = keys.filter(|_| run.options.writes_cache) else {
        return;
    };
    let stored = holds_a_folder(run, step).and_then(|is_named| {
        finished.is_path_specific = is_named
            || folder_in_inputs::is_named(seen, run.options.directory, run.options.path_map);
        store_result(run, step, keys, finished, seen, began)
    });
    finished.not_stored = stored.err().map(|e| e.to_string());
}

/// Whether a result contains the name of a mapped folder, or may contain it in a form that cannot be searched.
fn holds_a_folder(run: &RunContext<'_>, step: &Step) -> io::Result<bool> {
    let path_map = run.options.path_map;
    if path_map.is_empty() {
        return Ok(false);
    }
    let mut is_text = true;
    for &id in &step.writes {
        match fs::read(run.artifacts.path(id)) {
            Ok(bytes) if path_map.is_named_in(&run.artifacts.without_folder(&bytes)) => {
                return Ok(true);
            }
            Ok(bytes) => is_text &= std::str::from_utf8(&bytes).is_ok(),
            // With -optix-ir, cicc gets the name of a module id file and does not write it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // LTO and OptiX code is packed, so it cannot be searched for the directory, or for an id that cicc made with a
    // process id.
    let makes_id = |arg: &Arg| arg.as_text() == Some(module_id::MAKES_MODULE_ID);
    let moved = relocate::directory(step, run.artifacts, run.options) == Path::new("/");
    Ok(step.tool == Tool::Cicc && !is_text && (!moved || step.args.iter().any(makes_id)))
}

/// Stores the result under the key of `keys` that fits it.
fn store_result(
    run: &RunContext<'_>,
    step: &Step,
    keys: &KeyVariants,
    finished: &mut Finished,
    seen: &TracedInputs,
    began: SystemTime,
) -> io::Result<()> {
    let Some(store) = run.options.store else {
        return Ok(());
    };
    if run.options.children.is_closed() {
        return Err(io::Error::other("interrupted"));
    }
    if let Some(why) = &seen.untracked {
        return Err(io::Error::other(why.clone()));
    }
    let mut manifest = seen.manifest(began, |_, _| false);
    manifest.command(&step.raw);
    let manifest = manifest
        .relative_to(run.options.directory)
        .finish_knowing(store, None)
        .map_err(io::Error::other)?;
    let mut outputs = Vec::with_capacity(step.writes.len());
    for (place, &id) in step.writes.iter().enumerate() {
        let path = run.artifacts.path(id);
        // These are megabytes of device source that cicc writes and no tool reads.
        let is_absent = || module_id::may_be_missing(run, step, id) && !path.exists();
        if !run.graph.is_needed(id) || is_absent() {
            continue;
        }
        if !modes::is_usual(path) {
            return Err(io::Error::other(modes::UNUSUAL));
        }
        outputs.push(ProducedFile {
            role: place.to_string(),
            digest: run.artifacts.save(id, Packing::Zstd)?,
            executable: modes::is_program(path),
        });
    }
    let fixed = |text: &[u8]| {
        run.options
            .path_map
            .fix_text(&run.artifacts.without_folder(text))
    };
    let outcome = Outcome {
        outputs,
        stdout: fixed(&finished.stdout),
        stderr: fixed(&finished.stderr),
        extra: Conditions::observe(&seen.asked, &seen.times, run.options.run_environment())
            .encode(),
        micros: u64::try_from((finished.user + finished.system).as_micros()).unwrap_or(u64::MAX),
    };
    let key = keys.for_result(finished.is_path_specific, &outcome);
    let key = key.ok_or_else(|| io::Error::other("a folder's name is in the result"))?;
    store
        .store_mapped(
            Level::Steps,
            &key,
            run.options.path_map,
            &manifest,
            &outcome,
        )
        .map_err(io::Error::other)?;
    finished.of_any_lines = (keys.of_any_lines())
        .filter(|_| {
            !finished.is_path_specific && outcome.stdout.is_empty() && outcome.stderr.is_empty()
        })
        .map(|of_any_lines| (key, of_any_lines));
    if let Some(upstream) = run.options.upstream {
        upstream.offer(store, Level::Steps, &key);
    }
    Ok(())
}
