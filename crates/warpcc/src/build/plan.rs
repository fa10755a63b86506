//! From nvcc's plan to the graph that is run: which plans are supported, and which steps may overlap.

use std::path::Path;

use warpcc_engine::compiler_cache::find_compiler;
use warpcc_engine::known_programs::KnownPrograms;
use warpcc_plan::source_names::rename_sources;
use warpcc_plan::{FileKind, TaskGraph, Tool, Transcript, Unsupported};
use warpcc_plan::{cicc_halves, overlap, prediction};

use super::options::BuildOptions;
use crate::module_ids;
use crate::outputs::{self, Outputs};
use crate::request::Request;

/// The reason for plans that write more or other files than the call should.
const OTHER_OUTPUTS: &str = "the dry run writes other files than the call";

/// A plan that may be run.
pub(super) struct Plan {
    /// nvcc's commands and nothing else.
    pub(super) plain: TaskGraph,
    /// The same with changes that let steps overlap or start early.
    pub(super) graph: TaskGraph,
    /// The arguments under which the source's module id and stub are remembered.
    pub(super) id_subject: Option<Vec<String>>,
}

impl Plan {
    /// Makes a graph of what nvcc printed.
    ///
    /// # Errors
    /// The plan is not understood, or only nvcc may write its outputs.
    pub(super) fn make(
        transcript: &Transcript,
        private: &str,
        request: &Request,
        options: &BuildOptions<'_>,
    ) -> Result<Self, Unsupported> {
        let mut plain = TaskGraph::build(transcript, private)?;
        decide_on_outputs(request, &plain)?;
        check_outputs(request, &plain)?;
        if !request.invocation.keeps
            && let Some(file) = between_steps(request, &plain)
        {
            return Err(Unsupported::new(
                "an intermediate file outside the private folder",
                file,
            ));
        }
        if !request.path_map.is_empty() {
            rename_sources(&mut plain, &|path| {
                request.path_map.fixed(path).into_owned()
            });
        }
        let mut graph = plain.clone();
        let id_subject = prediction::module_id_subject(&graph);
        if !options.faithful && !options.sequential {
            let_overlap(&mut graph, id_subject.as_deref(), request, options);
        }
        Ok(Self {
            plain,
            graph,
            id_subject,
        })
    }

    /// Remembers the source's module id and stub, so that steps of its next build can start early.
    pub(super) fn remember(&self, graph: &TaskGraph, options: &BuildOptions<'_>) {
        let store = options.store.filter(|_| options.writes_cache);
        if let (Some(store), Some(subject)) = (store, &self.id_subject) {
            module_ids::remember(store, subject, graph);
            module_ids::remember_stub(store, subject, graph);
        }
    }
}

/// Changes the graph so that steps can start earlier than nvcc would start them.
fn let_overlap(
    graph: &mut TaskGraph,
    id_subject: Option<&[String]>,
    request: &Request,
    options: &BuildOptions<'_>,
) {
    let known = KnownPrograms::new(options.store);
    overlap::split_host_compile(graph, &|program| is_compiler(request, &known, program));
    // Bitcode holds the folder of its source where that is mapped, and cannot be searched for it.
    let splits_cicc = options.early_cutoff && request.path_map.is_empty();
    let has_front_ends = splits_cicc && cicc_halves::split_cicc(graph) > 0;
    if let (Some(store), Some(subject)) = (options.store, id_subject)
        && let Some(id) = module_ids::recall(store, subject)
    {
        prediction::predict_module_id(graph, &id);
    }
    if let (Some(store), Some(subject)) = (options.store, id_subject)
        && let Some(stub) = module_ids::recall_stub(store, subject, graph)
    {
        prediction::predict_stub(graph, &stub);
    } else if !has_front_ends {
        prediction::take_announced_stub(graph);
    }
}

/// Whether a program is a compiler itself, by its own file: not a script or another program under a compiler's name.
fn is_compiler(request: &Request, known: &KnownPrograms<'_>, program: &str) -> bool {
    let path = request.variable("PATH");
    let found = find_compiler(program, path, &request.directory);
    let real = found.and_then(|file| file.canonicalize().ok());
    real.is_some_and(|file| known.is_compiler(&file))
}

/// An intermediate file that nvcc puts outside the scratch folder, as with `--objdir-as-tempdir`: one step writes it, another
/// reads it, and it is no output of the command line.
fn between_steps<'g>(request: &Request, graph: &'g TaskGraph) -> Option<&'g str> {
    let outputs = request.invocation.outputs();
    let is_asked_for = |path: &str| outputs.iter().any(|output| output.path == path);
    let mut read = graph.steps.iter().flat_map(|step| &step.reads);
    let outside = read.find(|&&id| {
        let file = graph.file(id);
        file.kind == FileKind::Output && file.writer.is_some() && !is_asked_for(&file.path)
    });
    outside.map(|&id| graph.file(id).path.as_str())
}

/// Fails if the plan writes other files than those that the command line asks for. A word of `-Xarchive` may stand where `ar`
/// expects its name, or a new nvcc may not show all that it does.
fn check_outputs(request: &Request, graph: &TaskGraph) -> Result<(), Unsupported> {
    let asked_for = request.invocation.outputs();
    let written: Vec<&str> = graph
        .files
        .iter()
        .filter(|file| file.kind == FileKind::Output && file.writer.is_some())
        .map(|file| file.path.as_str())
        .collect();
    let is_same = |one: &str, other: &str| Path::new(one) == Path::new(other);
    let missing = asked_for
        .iter()
        .find(|output| !written.iter().any(|path| is_same(path, &output.path)));
    if let Some(output) = missing {
        return Err(Unsupported::new(OTHER_OUTPUTS, output.path.clone()));
    }
    let mut strange = written.iter().filter(|_| !request.invocation.keeps);
    match strange.find(|path| !asked_for.iter().any(|output| is_same(path, &output.path))) {
        Some(path) => Err(Unsupported::new(OTHER_OUTPUTS, *path)),
        None => Ok(()),
    }
}

/// Fails where an output must not be replaced by a new file. Nothing has been written yet.
fn decide_on_outputs(request: &Request, graph: &TaskGraph) -> Result<(), Unsupported> {
    let mut outputs = Outputs::new(request)?;
    for file in graph.files.iter().filter(|f| f.kind == FileKind::Output) {
        let writer = file.writer.map(|at| graph.steps[at].tool);
        let kind = outputs::ExpectedKind::from_record(writer == Some(Tool::HostLink));
        outputs.decide(&request.absolute(&file.path), kind)?;
    }
    // nvcc removes these files. warpcc removes only what it could also replace.
    let mut removed = Outputs::new(request)?;
    for path in graph.steps.iter().flat_map(|step| &step.removes) {
        removed.decide(&request.absolute(path), outputs::ExpectedKind::Data)?;
    }
    Ok(())
}
