//! Finds out whether a tool takes the relative names of its inputs and outputs from another folder than the working directory.
//! clang's [`-working-directory`](crate::working_directory) does this, and a compiler wrapper that changes its directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use warpcc_plan::{Arg, FileId, FileKind, Step};
use warpcc_watch::Observed;

use crate::compiler_cache::is_compiler_cache;
use crate::context::RunContext;
use crate::relocate;
use crate::traced_inputs::TracedInputs;
use crate::working_directory;

/// What a step's tool took from another folder.
pub struct Misplaced {
    /// An input that no process opened.
    unopened: Option<String>,
    /// Outputs that warpcc gave the tool under absolute names, where the tool may take relative ones from another folder.
    moved: Vec<String>,
}

impl Misplaced {
    /// Compares the plan's names with those that the tool used.
    pub fn find(run: &RunContext<'_>, step: &Step, observed: &Observed) -> Self {
        match relocate::directory(step, run.artifacts, run.options) == run.options.directory {
            true => Self {
                unopened: unopened_input(run, step, observed),
                moved: moved_outputs(run, step, observed),
            },
            false => Self {
                unopened: None,
                moved: Vec::new(),
            },
        }
    }

    /// Adds the consequences to the observations. Only nvcc can make the dependency file of an input that the plan does not
    /// name, and an output whose relative name means another file. With an absolute name the output is right, but the key
    /// would also answer a call with a relative one.
    pub fn note(&self, seen: &mut TracedInputs) {
        if let Some(path) = &self.unopened {
            seen.set_side_file(&format!("{path} is not the file that was read"));
        }
        for path in &self.moved {
            let why = format!("{path} may be in another folder under a relative name");
            match Path::new(path).is_relative() {
                true => seen.set_side_file(&why),
                false => _ = seen.untracked.get_or_insert(why),
            }
        }
    }
}

fn unopened_input(run: &RunContext<'_>, step: &Step, observed: &Observed) -> Option<String> {
    // A driver that prints its commands for a cluster opens nothing.
    let only_prints = |arg: &Arg| arg.as_text() == Some("-###");
    if step.args.iter().any(only_prints) {
        return None;
    }
    // A compiler cache may know an input's content without opening it.
    let mut programs = observed.processes.iter();
    if programs.any(|program| is_compiler_cache(program)) {
        return None;
    }
    let inputs = step.reads.iter().map(|&id| run.graph.file(id));
    let mut inputs = inputs.filter(|file| file.kind == FileKind::External);
    let unopened = inputs.find(|file| {
        let path = Path::new(&file.path);
        !is_opened(path, &run.options.directory.join(path), observed)
    });
    unopened.map(|file| file.path.clone())
}

/// Whether a process opened this file, under this name or another one.
fn is_opened(path: &Path, whole: &Path, observed: &Observed) -> bool {
    let mut names = [path, whole].into_iter();
    names.any(|name| observed.read.contains_key(name.as_os_str()))
        || fs::metadata(whole).is_ok_and(|found| {
            let mut opened = observed.read.values();
            opened.any(|file| (file.device, file.inode) == (found.dev(), found.ino()))
        })
}

fn moved_outputs(run: &RunContext<'_>, step: &Step, observed: &Observed) -> Vec<String> {
    let outputs = step.writes.iter().filter(|&&id| {
        run.artifacts.is_elsewhere(id) && run.graph.file(id).kind == FileKind::Output
    });
    let outputs: Vec<_> = outputs.collect();
    if outputs.is_empty() {
        return Vec::new();
    }
    let is_planned = |path: &Path| {
        let mut files = step.reads.iter().chain(&step.writes);
        files.any(|&id| {
            let named = Path::new(&run.graph.file(id).path);
            path == run.artifacts.path(id) || path == run.options.directory.join(named)
        })
    };
    let options = run.options;
    let directory = options.directory;
    let all = working_directory::may_differ(
        observed,
        directory,
        options.environment,
        &is_planned,
        &run.known,
    );
    let is_moved = |id: FileId| {
        let path = run.artifacts.path(id).as_os_str();
        all || observed.written_elsewhere.contains(path)
    };
    let moved = outputs.into_iter().filter(|&&id| is_moved(id));
    moved.map(|&id| run.graph.file(id).path.clone()).collect()
}
