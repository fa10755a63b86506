//! Adds inputs to a call's record that the watch library did not see: the programs that warpcc itself looked for, and the
//! sources of steps that hit and so did not run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use warpcc_cache::{ExpectedFile, guards};
use warpcc_plan::{FileKind, Program, Step};

use crate::context::RunContext;
use crate::located::Located;
use crate::search_path;
use crate::traced_inputs::TracedInputs;

/// Adds the step's program. warpcc looks for it in `PATH`, as nvcc's shell would.
pub fn add_program(run: &RunContext<'_>, step: &Step, program: &Located, seen: &mut TracedInputs) {
    if guards::is_off("programs-of-steps") {
        return;
    }
    seen.expect(&program.path, ExpectedFile::default());
    let asked = match &step.program {
        Program::AskCompiler { compiler, .. } => Some(compiler.as_str()),
        Program::Named(_) | Program::Internal => None,
    };
    let names = asked.into_iter().chain([program.name.as_str()]);
    let path = run.options.variable("PATH").unwrap_or_default();
    for name in names.filter(|name| !name.contains('/')) {
        let folders = || std::env::split_paths(path).map(|f| run.options.directory.join(f));
        let is_there = |folder: &PathBuf| search_path::is_executable(&folder.join(name));
        // A program in one of nvcc's folders is found there whatever the user's PATH says.
        let found = folders().find(is_there);
        if !found.is_some_and(|folder| run.options.is_nvccs_folder(&folder)) {
            seen.asked.programs.insert(OsString::from(name));
        }
        // The watch library does not see warpcc's own search.
        add_search(run, OsStr::new(name), seen);
    }
}

/// Adds the searches that a step which hit would have made in the current `PATH`. The run that made its result may have had
/// another `PATH`.
pub fn add_searches(run: &RunContext<'_>, seen: &mut TracedInputs) {
    for name in seen.asked.programs.clone() {
        add_search(run, &name, seen);
    }
}

/// Adds the files that do not exist in the earlier folders of `PATH`: if one appears, it is the program that would run.
fn add_search(run: &RunContext<'_>, name: &OsStr, seen: &mut TracedInputs) {
    if guards::is_off("earlier-programs") {
        return;
    }
    let path = run.options.variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(path).map(|f| run.options.directory.join(f));
    let files = folders.map(|folder| folder.join(name));
    let earlier = files.take_while(|file| !search_path::is_executable(file));
    let absent = earlier.filter(|file| file.symlink_metadata().is_err());
    seen.missing.extend(absent.map(Into::into));
}

/// Adds the user's files that a step which hit would have read. The step's key has their contents; the call's record also needs
/// their names.
pub fn add_source_files(run: &RunContext<'_>, step: &Step, seen: &mut TracedInputs) {
    let any = ExpectedFile::default();
    for &id in &step.reads {
        let file = run.graph.file(id);
        if file.kind == FileKind::External {
            seen.expect(Path::new(&file.path), any);
        }
    }
}
