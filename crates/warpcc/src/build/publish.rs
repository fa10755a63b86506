//! The end of a build: outputs in place, the call in the cache, copies of intermediate files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use warpcc_engine::Run;
use warpcc_plan::{FileKind, PlanFile, Step, TaskGraph, Tool, Unsupported};
use warpcc_report::record::Header;

use super::options::BuildOptions;
use crate::dates::Texts;
use crate::direct::{Keeping, Made, NotKept};
use crate::messages::Streams;
use crate::place;
use crate::request::Request;
use crate::scratch::Scratch;
use crate::signals::Interrupt;
use crate::twin::Evidence;

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
) -> Result<Result<Vec<Header>, NotKept>, Unsupported> {
    let kept = match run.code {
        0 => keep(request, options, graph, run, &interrupt.messages.so_far()),
        _ => Ok(Vec::new()),
    };
    for (now, plan) in &run.outputs {
        if now.exists() {
            let to = request.directory.join(plan);
            place::place(now, &to, &interrupt.unfinished).map_err(|e| {
                Unsupported::new(
                    "an output cannot be written",
                    format!("{}: {e}", plan.display()),
                )
            })?;
        }
    }
    Ok(kept)
}

/// Stores the whole call, where results are stored.
fn keep(
    request: &Request,
    options: &BuildOptions<'_>,
    graph: &TaskGraph,
    run: &Run,
    streams: &Streams,
) -> Result<Vec<Header>, NotKept> {
    let Some(store) = options.store.filter(|_| options.writes_cache) else {
        return Ok(Vec::new());
    };
    let now_at = |file: &PlanFile| {
        let plan = file.path.as_str();
        let mut made = run.outputs.iter();
        let made = made.find(|(_, name)| name.as_os_str() == plan);
        made.map_or_else(|| request.absolute(plan), |(now, _)| now.clone())
    };
    let mut outputs = Vec::new();
    for file in graph.files.iter().filter(|f| f.kind == FileKind::Output) {
        let writer = file.writer.map(|at| graph.steps[at].tool);
        outputs.push(Made {
            now: now_at(file),
            plan: file.path.clone(),
            lists_files: writer == Some(Tool::FilterDependencies),
        });
    }
    let made_by = |wanted: &dyn Fn(&Step) -> bool| -> Vec<PathBuf> {
        let steps = graph.steps.iter().filter(|step| wanted(step));
        let files = steps.flat_map(|step| &step.writes);
        files.map(|&id| now_at(graph.file(id))).collect()
    };
    let keeping = Keeping {
        store,
        upstream: options.upstream,
        request,
        keys: options.keys,
        twins: options.twins,
        evidence: match options.twins {
            [] => None,
            _ => Evidence::collect(graph, &now_at),
        },
        run,
        outputs: &outputs,
        texts: &Texts {
            preprocessed: &made_by(&|step| step.tool == Tool::Preprocess),
            made_unseen: &made_by(&|step| graph.preprocesses_unseen(step)),
            args: &request.args,
            began: run.began,
            expanded: run.seen.expanded_date,
        },
        streams: (&streams.stdout, &streams.stderr),
    };
    keeping.keep()
}

/// A file in the private folder that no plan has: for a run that was not watched.
pub(super) fn left_beside(scratch: &Scratch, graph: &TaskGraph, run: &Run) -> Option<String> {
    let planned = graph.files.iter().map(|file| OsStr::new(file.name()));
    let made = run.outputs.iter().filter_map(|(now, _)| now.file_name());
    let known: BTreeSet<&OsStr> = planned.chain(made).collect();
    let entries = |folder: PathBuf| {
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        found.map(|entry| entry.path())
    };
    // Each output has a folder of its own.
    let of_outputs = entries(scratch.path().join("out")).flat_map(entries);
    let mut files = of_outputs.chain(entries(scratch.path().join("k")));
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
