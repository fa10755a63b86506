//! [`Transcript`] → [`TaskGraph`]: steps in nvcc's order, with edges from the files that they read and write.
//!
//! Two edges are in no argument: the host compile of cudafe++'s output includes the stub that one cicc wrote, and that
//! stub includes the C form of the fat binary. Both files are found through names in the arguments of cudafe++ and
//! cicc.

use crate::Unsupported;
use crate::assumed::{Assumed, Expected, Prepared};
use crate::file_table::FileTable;
use crate::step::{Arg, FileId, FileKind, PlanFile, Program, Step, Tool};
use crate::tools;
use crate::transcript::{PlanLine, Transcript};
use crate::words::Word;

/// Steps and files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskGraph {
    /// The steps in nvcc's order, which is also the order of diagnostics.
    pub steps: Vec<Step>,
    /// All files that the plan mentions.
    pub files: Vec<PlanFile>,
    /// The variables that nvcc exports to its commands.
    pub environment: Vec<(String, String)>,
    /// The folder that `--keep-dir` named, with a slash at its end.
    pub private: String,
    /// Files that must exist before the first step starts.
    pub prepared: Vec<Prepared>,
    /// Assumptions that must be confirmed before the result counts.
    pub assumed: Vec<Assumed>,
    needs: Vec<Vec<usize>>,
}

impl TaskGraph {
    /// Whether the file is needed once it is written: by the user, by a step that reads it, or by an assumption about it.
    /// Every stub is needed: only the last architecture's is read, and the next call may have another last one. A module id
    /// is needed by the search for the source's folder in a result, although no step of a device-only call reads it.
    pub fn is_needed(&self, id: FileId) -> bool {
        let file = self.file(id);
        let is_read = || self.steps.iter().any(|step| step.reads.contains(&id));
        let is_assumed = || self.assumed.iter().any(|assumed| assumed.is_about(id));
        let is_stub = || file.path.ends_with(".stub.c");
        let is_id = || file.is_module_id();
        file.kind != FileKind::Temp || is_stub() || is_id() || is_read() || is_assumed()
    }

    /// Builds the graph of a dry run whose `--keep-dir` was `private` (absolute, ending in `/`). An empty `private` means
    /// that the user keeps the intermediate files.
    ///
    /// # Errors
    /// A tool, an argument or an edge that is not understood.
    pub fn build(transcript: &Transcript, private: &str) -> Result<Self, Unsupported> {
        // Without a private folder no file is Temp, because no path starts with a NUL.
        let mut files = FileTable::new(private);
        let mut steps: Vec<Step> = Vec::new();
        let mut removes = Vec::new();
        let mut unfiltered: Vec<FileId> = Vec::new();
        for entry in &transcript.entries {
            let mut step = match entry {
                PlanLine::Remove(path) => {
                    if files.is_written(path) {
                        return Err(Unsupported::new(
                            "unknown dry-run line",
                            format!("rm of a result: {path}"),
                        ));
                    }
                    removes.push(path.clone());
                    continue;
                }
                PlanLine::FilterDependencies { target } => {
                    // The texts in the rule, and their order, follow the plan's order, which is not fixed here.
                    if transcript.threaded {
                        return Err(Unsupported::new("dependencies under --threads", target));
                    }
                    let target = files.intern(target);
                    Step {
                        tool: Tool::FilterDependencies,
                        program: Program::Internal,
                        args: Vec::new(),
                        reads: std::mem::take(&mut unfiltered),
                        writes: vec![target],
                        removes: Vec::new(),
                        arch: None,
                        raw: "-- Filter Dependencies --".to_owned(),
                    }
                }
                PlanLine::Command { words, raw } => command(words, raw, &mut files, &steps)?,
            };
            if step.tool == Tool::Preprocess {
                unfiltered.extend(&step.writes);
            }
            // The nvlink of each architecture adds to the same registration file.
            if step.tool == Tool::Nvlink {
                let again = step
                    .writes
                    .iter()
                    .copied()
                    .filter(|&id| files.files[id.0 as usize].writer.is_some());
                step.reads.extend(again.collect::<Vec<_>>());
            }
            files.take(&step, steps.len())?;
            step.removes = std::mem::take(&mut removes);
            steps.push(step);
        }
        let mut graph = Self {
            steps,
            files: files.files,
            environment: transcript.environment.clone(),
            private: private.to_owned(),
            prepared: Vec::new(),
            assumed: Vec::new(),
            needs: Vec::new(),
        };
        graph.recount_needs();
        graph.check_private_folder()?;
        Ok(graph)
    }

    /// The file behind an id.
    pub fn file(&self, id: FileId) -> &PlanFile {
        &self.files[id.0 as usize]
    }

    /// The steps that `step` waits for, in order, each once.
    pub fn needs(&self, step: usize) -> &[usize] {
        &self.needs[step]
    }

    /// Whether `step` preprocesses and compiles one of the user's sources (a `.cpp` file, or any with clang) in one go, so that no other step
    /// sees the preprocessed text.
    pub fn preprocesses_unseen(&self, step: &Step) -> bool {
        let is_own = |id: &FileId| self.file(*id).kind == FileKind::External;
        matches!(
            step.tool,
            Tool::HostCompile | Tool::HostAssembly | Tool::Clang
        ) && step.reads.iter().any(is_own)
    }

    /// Adds an intermediate file.
    pub(crate) fn add_temporary(&mut self, path: String, writer: Option<usize>) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(PlanFile {
            path,
            kind: FileKind::Temp,
            writer,
        });
        id
    }

    /// Inserts a step at `at`; the indices of later steps grow by one.
    pub(crate) fn insert_step(&mut self, at: usize, step: Step) {
        for file in &mut self.files {
            if let Some(writer) = file.writer.as_mut().filter(|w| **w >= at) {
                *writer += 1;
            }
        }
        for &id in &step.writes {
            self.files[id.0 as usize].writer = Some(at);
        }
        self.steps.insert(at, step);
        self.recount_needs();
    }

    /// Computes all edges again from the files that each step reads.
    pub(crate) fn recount_needs(&mut self) {
        let mut writer: Vec<Option<usize>> = vec![None; self.files.len()];
        self.needs.clear();
        for (i, step) in self.steps.iter().enumerate() {
            let mut needs: Vec<usize> = step
                .reads
                .iter()
                .filter_map(|id| writer[id.0 as usize])
                .collect();
            needs.sort_unstable();
            needs.dedup();
            self.needs.push(needs);
            for id in &step.writes {
                writer[id.0 as usize] = Some(i);
            }
            for assumed in &self.assumed {
                if assumed.expected == Expected::Announced && step.writes.contains(&assumed.file) {
                    writer[assumed.stand_in.0 as usize] = Some(i);
                }
            }
        }
    }

    /// Checks that no literal text contains the private folder, because it would end up in a key or a result.
    fn check_private_folder(&self) -> Result<(), Unsupported> {
        if self.private.is_empty() {
            return Ok(());
        }
        let folder = self.private.trim_end_matches('/');
        for step in &self.steps {
            for part in step.args.iter().flat_map(|a| &a.0) {
                if let crate::step::Part::Text(text) = part
                    && text.contains(folder)
                {
                    return Err(Unsupported::new(
                        "the private folder in an unexpected place",
                        format!("{}: {text}", step.tool),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn command(
    words: &[Word],
    raw: &str,
    files: &mut FileTable,
    earlier: &[Step],
) -> Result<Step, Unsupported> {
    let [program, rest @ ..] = words else {
        return Err(Unsupported::new("unknown dry-run line", raw));
    };
    let rest: Vec<&str> = rest
        .iter()
        .map(|w| match w {
            Word::Text(t) => Ok(t.as_str()),
            Word::Substitution(c) => Err(Unsupported::new("shell syntax in the dry run", c)),
        })
        .collect::<Result<_, _>>()?;
    let tool = tools::identify(program, &rest)?;
    let mut typed = tools::type_arguments(tool, &rest, files)?;
    if matches!(tool, Tool::HostCompile | Tool::Preprocess) {
        typed
            .reads
            .extend(included_by_host(&typed.reads, files, earlier)?);
    }
    let program = match program {
        Word::Text(path) => Program::Named(path.clone()),
        Word::Substitution(command) => match command.split_once(" -print-prog-name=") {
            Some((compiler, name)) if !compiler.contains(' ') => Program::AskCompiler {
                compiler: compiler.to_owned(),
                name: name.to_owned(),
            },
            _ => return Err(Unsupported::new("unknown tool", command)),
        },
    };
    Ok(Step {
        tool,
        program,
        args: typed.args,
        reads: typed.reads,
        writes: typed.writes,
        removes: Vec::new(),
        arch: typed.arch,
        raw: raw.to_owned(),
    })
}

/// The value after `flag` in a step's arguments.
fn named<'a>(step: &'a Step, flag: &str) -> Option<&'a Arg> {
    let at = step.args.iter().position(|a| a.as_text() == Some(flag))?;
    step.args.get(at + 1)
}

fn sibling(path: &str, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_owned(),
    }
}

/// The stub and the C form of the fat binary, for a source that cudafe++ wrote.
fn included_by_host(
    reads: &[FileId],
    files: &mut FileTable,
    earlier: &[Step],
) -> Result<Vec<FileId>, Unsupported> {
    let mut included = Vec::new();
    for &id in reads {
        let source = &files.files[id.0 as usize];
        let Some(writer) = source.writer.filter(|&w| earlier[w].tool == Tool::CudaFe) else {
            continue; // This is the user's own source, or a link stub.
        };
        let source = source.path.clone();
        let missing = |what: &str| {
            Unsupported::new(
                "the host code's stub is not understood",
                format!("{what} of {source}"),
            )
        };
        let stub_name = named(&earlier[writer], "--stub_file_name")
            .and_then(Arg::as_text)
            .ok_or_else(|| missing("no stub name"))?;
        let stub = files.intern(&sibling(&source, stub_name));
        let cicc = files.files[stub.0 as usize]
            .writer
            .filter(|&w| earlier[w].tool == Tool::Cicc)
            .ok_or_else(|| missing("no command writes the stub"))?;
        let fatbin_name = named(&earlier[cicc], "--include_file_name")
            .and_then(Arg::as_text)
            .ok_or_else(|| missing("no fat binary name"))?;
        let fatbin = files.intern(&sibling(&source, fatbin_name));
        if files.files[fatbin.0 as usize].writer.is_none() {
            return Err(missing("no command writes the fat binary"));
        }
        included.extend([stub, fatbin]);
    }
    Ok(included)
}
