//! The end of a build: stores the call, puts the outputs in place, and copies intermediate files for `--save`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use warpcc_engine::Run;
use warpcc_plan::{FileKind, PlanFile, Step, TaskGraph, Tool, Unsupported};
use warpcc_report::record::Header;

use super::options::BuildOptions;
use crate::content_key::PathCheck;
use crate::dates::Texts;
use crate::direct::{FinalFile, NotStored, ResultToStore};
use crate::messages::Streams;
use crate::place;
use crate::request::Request;
use crate::scratch::Scratch;
use crate::session::unusable_directory;
use crate::signals::Interrupt;

/// Puts the outputs in place, and stores the whole call when it succeeded.
///
/// # Errors
/// An output cannot be written.
pub(super) fn publish(
    request: &Request,
    options: &BuildOptions<'_>,
    graph: &TaskGraph,
    run: &Run,
    interrupt: &Interrupt,
) -> Result<Result<Vec<Header>, NotStored>, Unsupported> {
    let stored = match run.code {
        0 => store_call(request, options, graph, run, &interrupt.messages.so_far()),
        _ => Ok(Vec::new()),
    };
    // A folder that was moved meanwhile takes the outputs with it: nvcc's tools find it without its name.
    if let Some(reason) = unusable_directory(&request.directory) {
        return Err(Unsupported::new(reason, ""));
    }
    for (current_path, plan) in &run.outputs {
        if current_path.exists() {
            let to = request.directory.join(plan);
            place::place(current_path, &to, &interrupt.unfinished).map_err(|e| {
                Unsupported::new(
                    "an output cannot be written",
                    format!("{}: {e}", plan.display()),
                )
            })?;
        }
    }
    Ok(stored)
}

/// Stores the whole call, if the cache may be written. Gives the headers that were read.
fn store_call(
    request: &Request,
    options: &BuildOptions<'_>,
    graph: &TaskGraph,
    run: &Run,
    streams: &Streams,
) -> Result<Vec<Header>, NotStored> {
    let Some(store) = options.store.filter(|_| options.writes_cache) else {
        return Ok(Vec::new());
    };
    let current_path = |file: &PlanFile| {
        let plan = file.path.as_str();
        let mut outputs = run.outputs.iter();
        let found = outputs.find(|(_, name)| name.as_os_str() == plan);
        found.map_or_else(|| request.absolute(plan), |(path, _)| path.clone())
    };
    let mut outputs = Vec::new();
    for file in graph.files.iter().filter(|f| f.kind == FileKind::Output) {
        let writer = file.writer.map(|at| graph.steps[at].tool);
        outputs.push(FinalFile {
            current_path: current_path(file),
            plan_path: file.path.clone(),
            is_dependency_file: writer == Some(Tool::FilterDependencies),
        });
    }
    let written_by = |wanted: &dyn Fn(&Step) -> bool| -> Vec<PathBuf> {
        let steps = graph.steps.iter().filter(|step| wanted(step));
        let files = steps.flat_map(|step| &step.writes);
        files.map(|&id| current_path(graph.file(id))).collect()
    };
    let result = ResultToStore {
        store,
        upstream: options.upstream,
        request,
        keys: options.keys,
        content_keys: options.content_keys,
        path_check: match options.content_keys {
            [] => None,
            _ => PathCheck::collect(graph, &current_path),
        },
        run,
        outputs: &outputs,
        commands: &graph.steps,
        texts: &Texts {
            preprocessed: &written_by(&|step| step.tool == Tool::Preprocess),
            made_unseen: &written_by(&|step| graph.preprocesses_unseen(step)),
            args: &request.args,
            began: run.began,
            expanded: run.seen.expanded_date,
        },
        streams: (&streams.stdout, &streams.stderr),
    };
    result.store()
}

/// Finds a file in the scratch folder that the plan does not have. This finds side files of a run without the watch library.
pub(super) fn find_side_file(scratch: &Scratch, graph: &TaskGraph, run: &Run) -> Option<String> {
    let planned = graph.files.iter().map(|file| OsStr::new(file.name()));
    let outputs = run.outputs.iter().filter_map(|(path, _)| path.file_name());
    let known: BTreeSet<&OsStr> = planned.chain(outputs).collect();
    let entries = |folder: PathBuf| {
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        found.map(|entry| entry.path())
    };
    // Each output has a folder of its own.
    let near_outputs = entries(scratch.path().join("out")).flat_map(entries);
    let mut files = near_outputs.chain(entries(scratch.path().join("k")));
    let ours = |path: &Path| path.extension().is_some_and(|ending| ending == "s");
    let left = files.find(|path| {
        let name = path.file_name().unwrap_or_default();
        path.is_file() && !known.contains(name) && !ours(path)
    });
    left.map(|path| format!("{} is created too", path.display()))
}

/// Copies every command's files into a folder with its number, as fast_nvcc's `--save` does.
pub(super) fn save(graph: &TaskGraph, run: &Run, folder: &Path, request: &Request) {
    for (number, step) in graph.steps.iter().enumerate() {
        let into = folder.join(number.to_string());
        if let Err(error) = fs::create_dir_all(&into) {
            crate::log::warn(&format!("cannot save to {}: {error}", into.display()));
            return;
        }
        for &id in &step.writes {
            let file = graph.file(id);
            let now = run
                .outputs
                .iter()
                .find(|(_, plan)| plan.as_os_str() == file.path.as_str());
            let now = now.map_or_else(|| request.absolute(&file.path), |(now, _)| now.clone());
            if now.exists()
                && let Err(error) = fs::copy(&now, into.join(file.name()))
            {
                crate::log::warn(&format!("cannot save {}: {error}", now.display()));
            }
        }
    }
}
