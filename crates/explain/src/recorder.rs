//! Makes the explanation from a plan and its commands' files, one step after the other, as they end.

use std::collections::BTreeMap;

use warpcc_plan::{Arg, FileId, FileKind, Step, TaskGraph, Tool};

use crate::explanation::{
    CommandOutcome, Explanation, FORMAT, FileExplanation, FileState, ReadFile, Role,
    StepExplanation, TreeRow,
};
use crate::inspect::{self, EarlierFiles, UserSource};
use crate::{options, tool_docs};

/// The call to explain.
#[derive(Debug, Clone, Default)]
pub struct ObservedCall {
    /// nvcc and its arguments, as given.
    pub command: Vec<String>,
    /// The working directory.
    pub directory: String,
}

/// The run of a step.
#[derive(Debug, Clone)]
pub struct StepRun {
    /// How it ended.
    pub outcome: CommandOutcome,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Writes the explanation down while the plan runs.
#[derive(Debug, Default)]
pub struct Recorder {
    explanation: Explanation,
    known: EarlierFiles,
    /// By file: the step that wrote it last, and how large it is.
    written: BTreeMap<u32, (usize, Option<u64>)>,
}

impl Recorder {
    /// Begins the explanation of `call`.
    pub fn new(call: ObservedCall) -> Self {
        Self {
            explanation: Explanation {
                format: FORMAT,
                command: call.command,
                directory: call.directory,
                ..Explanation::default()
            },
            ..Self::default()
        }
    }

    /// Takes the plan, before its first step: every command, not run yet. `read` gives the text of
    /// the user's sources.
    pub fn plan(&mut self, graph: &TaskGraph, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) {
        graph.private.clone_into(&mut self.explanation.folder);
        self.explanation.environment = graph
            .environment
            .iter()
            .map(|(name, value)| options::variable(name, value))
            .collect();
        self.explanation.toolkit = toolkit(graph);
        self.explanation.steps = (0..graph.steps.len())
            .map(|index| unrun(graph, index))
            .collect();
        self.known.sources = sources(graph)
            .filter_map(|path| {
                let bytes = read(&path)?;
                let text = String::from_utf8_lossy(&bytes);
                Some(UserSource {
                    path,
                    lines: text.lines().map(str::to_owned).collect(),
                })
            })
            .collect();
    }

    /// Whether [`Recorder::plan`] was called.
    pub fn has_plan(&self) -> bool {
        !self.explanation.steps.is_empty()
    }

    /// Takes a step that has just ended. `read` gives the bytes of a file that it wrote, as they
    /// are now: a later step may write into the same file.
    pub fn step(
        &mut self,
        graph: &TaskGraph,
        index: usize,
        observed: StepRun,
        read: &mut dyn FnMut(FileId) -> Option<Vec<u8>>,
    ) {
        let step = &graph.steps[index];
        let mut writes = Vec::new();
        let before = self.written.clone();
        if observed.outcome == CommandOutcome::Ran {
            for &id in &step.writes {
                let Some(bytes) = read(id) else { continue };
                let inspection = inspect::inspect(graph, index, id, &bytes, &mut self.known);
                let size = bytes.len() as u64;
                let file = graph.file(id);
                self.written.insert(id.0, (index + 1, Some(size)));
                writes.push(FileExplanation {
                    name: file.name().to_owned(),
                    path: file.path.clone(),
                    role: role(graph, id),
                    state: state(before.contains_key(&id.0)),
                    bytes: size,
                    what: inspection.what.to_owned(),
                    read_by: readers(graph, id, index),
                    blocks: inspection.blocks,
                });
            }
        }
        let tree = self.tree(graph, index, &before);
        let Some(explained) = self.explanation.steps.get_mut(index) else {
            return;
        };
        explained.writes = writes;
        explained.tree = tree;
        explained.outcome = observed.outcome;
        explained.micros = observed.micros;
        explained.stdout = observed.stdout;
        explained.stderr = observed.stderr;
        explained.reads = step
            .reads
            .iter()
            .map(|&id| {
                let file = graph.file(id);
                ReadFile {
                    name: file.name().to_owned(),
                    path: file.path.clone(),
                    from: before.get(&id.0).map(|(by, _)| *by),
                }
            })
            .collect();
    }

    /// Every file of the compilation, as it is after step `index`.
    fn tree(
        &self,
        graph: &TaskGraph,
        index: usize,
        before: &BTreeMap<u32, (usize, Option<u64>)>,
    ) -> Vec<TreeRow> {
        let used = |id: FileId| {
            graph.steps[..=index]
                .iter()
                .any(|step| step.reads.contains(&id))
        };
        let rows = graph.files.iter().enumerate().filter_map(|(at, file)| {
            let id = FileId(u32::try_from(at).ok()?);
            let written = self.written.get(&id.0);
            if written.is_none() && !(file.writer.is_none() && used(id)) {
                return None;
            }
            let now = written.is_some_and(|(by, _)| *by == index + 1);
            Some(TreeRow {
                name: file.name().to_owned(),
                path: file.path.clone(),
                role: role(graph, id),
                state: match now {
                    true => state(before.contains_key(&id.0)),
                    false => FileState::Old,
                },
                by: written.map(|(by, _)| *by),
                bytes: written.and_then(|(_, bytes)| *bytes),
            })
        });
        let mut rows: Vec<TreeRow> = rows.collect();
        rows.sort_by_key(|row| (row.by, row.role != Role::Source));
        rows
    }

    /// Ends the explanation.
    pub fn finish(mut self, exit_code: i32) -> Explanation {
        self.explanation.exit_code = exit_code;
        self.explanation
    }
}

fn unrun(graph: &TaskGraph, index: usize) -> StepExplanation {
    let step = &graph.steps[index];
    let (title, purpose) = tool_docs::describe(graph, step);
    let words = options::words(step, |id| graph.file(id).path.clone());
    StepExplanation {
        number: index + 1,
        tool: step.tool.name().to_owned(),
        arch: step.arch.clone(),
        title,
        purpose,
        command: step.raw.clone(),
        options: options::explain(step.tool, &words),
        needs: graph.needs(index).iter().map(|need| need + 1).collect(),
        reads: Vec::new(),
        writes: Vec::new(),
        tree: Vec::new(),
        outcome: CommandOutcome::Skipped,
        micros: 0,
        stdout: String::new(),
        stderr: String::new(),
    }
}

fn state(there_before: bool) -> FileState {
    if there_before {
        FileState::Changed
    } else {
        FileState::New
    }
}

fn role(graph: &TaskGraph, id: FileId) -> Role {
    let file = graph.file(id);
    match file.kind {
        FileKind::Temp => Role::Intermediate,
        FileKind::External => Role::Source,
        // With -keep nvcc writes its intermediate files where the user sees them; they are still
        // what later steps read.
        FileKind::Output if graph.private.is_empty() && !readers(graph, id, 0).is_empty() => {
            Role::Intermediate
        }
        FileKind::Output => Role::Output,
    }
}

/// The numbers of the steps from `after` on that read the file.
fn readers(graph: &TaskGraph, id: FileId, after: usize) -> Vec<usize> {
    let reads = |step: &Step| step.reads.contains(&id);
    let steps = graph.steps.iter().enumerate().skip(after + 1);
    steps
        .filter(|(_, step)| reads(step))
        .map(|(at, _)| at + 1)
        .collect()
}

/// The sources of the user's, as the commands spell them.
fn sources(graph: &TaskGraph) -> impl Iterator<Item = String> {
    let mut paths: Vec<String> = graph
        .steps
        .iter()
        .filter(|step| step.tool == Tool::Preprocess)
        .flat_map(|step| &step.reads)
        .map(|&id| graph.file(id))
        .filter(|file| file.kind == FileKind::External)
        .map(|file| file.path.clone())
        .collect();
    paths.sort();
    paths.dedup();
    paths.into_iter()
}

/// The toolkit's version, from the macros of every preprocessor run.
fn toolkit(graph: &TaskGraph) -> Option<String> {
    let value = |name: &str| {
        let words = graph.steps.iter().flat_map(|step| &step.args);
        let mut words = words.filter_map(Arg::as_text);
        words.find_map(|word| {
            word.strip_prefix("-D__CUDACC_VER_")?
                .strip_prefix(name)?
                .strip_prefix("__=")
        })
    };
    let (major, minor) = (value("MAJOR")?, value("MINOR")?);
    Some(match value("BUILD") {
        Some(build) => format!("{major}.{minor}.{build}"),
        None => format!("{major}.{minor}"),
    })
}
