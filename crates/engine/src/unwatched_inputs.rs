//! Adds the dependencies of a call's record that its tools were not seen to have: the programs that we found for the
//! call, and the files of steps that hit.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use warpcc_cache::{ExpectedFile, guards};
use warpcc_plan::{FileKind, Program, Step};

use crate::context::RunContext;
use crate::locate::Located;
use crate::process;
use crate::traced_inputs::Seen;

/// We look for the step's program where nvcc's shell would: what `PATH` has of that name counts.
pub fn add_program(run: &RunContext<'_>, step: &Step, program: &Located, seen: &mut Seen) {
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
        let is_there = |folder: &PathBuf| process::is_executable(&folder.join(name));
        // A program in one of nvcc's folders is found there whatever the user's PATH says.
        let found = folders().find(is_there);
        if !found.is_some_and(|folder| run.options.is_nvccs_folder(&folder)) {
            seen.asked.programs.insert(OsString::from(name));
        }
        // Our own search is not watched.
        add_search(run, OsStr::new(name), seen);
    }
}

/// The programs that a step would look for now, had it run: in another `PATH` than the run's that made its result they
/// are looked for in other folders.
pub fn add_searches(run: &RunContext<'_>, seen: &mut Seen) {
    for name in seen.asked.programs.clone() {
        add_search(run, &name, seen);
    }
}

/// A program that appears in an earlier folder of `PATH` comes first.
fn add_search(run: &RunContext<'_>, name: &OsStr, seen: &mut Seen) {
    if guards::is_off("earlier-programs") {
        return;
    }
    let path = run.options.variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(path).map(|f| run.options.directory.join(f));
    let files = folders.map(|folder| folder.join(name));
    let earlier = files.take_while(|file| !process::is_executable(file));
    let absent = earlier.filter(|file| file.symlink_metadata().is_err());
    seen.missing.extend(absent.map(Into::into));
}

/// The user's files that this step would have read, had it run. They are in the key by their content; a record of the
/// call must know their names too.
pub fn add_source_files(run: &RunContext<'_>, step: &Step, seen: &mut Seen) {
    let any = ExpectedFile::default();
    for &id in &step.reads {
        let file = run.graph.file(id);
        if file.kind == FileKind::External {
            seen.expect(Path::new(&file.path), any);
        }
    }
}
