//! Finds a step's program where nvcc's shell would.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use warpcc_plan::{Program, Step};

use crate::compiler_cache;
use crate::context::RunContext;
use crate::{process, search_path};

/// A program that was found, with what its key needs.
pub struct Located {
    /// The program's file.
    pub path: PathBuf,
    /// The name that the search looked for.
    pub name: String,
    /// Its `argv[0]`.
    pub called: String,
}

pub fn locate(run: &RunContext<'_>, step: &Step) -> io::Result<Located> {
    let path = run.options.variable("PATH");
    let find = |name: &str| {
        let directory = run.options.directory;
        let found = compiler_cache::find_compiler(name, path, directory);
        let path = found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{name} is not in PATH"))
        })?;
        let usual = search_path::find_program(name, run.options.variable("PATH"), directory);
        let gives_way = usual.as_ref() != Some(&path);
        if gives_way && compiler_cache::chooses_another(run.options.environment) {
            return Err(io::Error::other(compiler_cache::CHOOSES));
        }
        // A compiler looks for its own programs from the name by which it is called, through PATH. A compiler cache, whose
        // place it takes, would call it by its whole path.
        let called = match gives_way {
            true => path.to_string_lossy().into_owned(),
            false => name.to_owned(),
        };
        Ok::<_, io::Error>(Located {
            path,
            name: name.to_owned(),
            called,
        })
    };
    match &step.program {
        Program::Named(name) => find(name),
        Program::AskCompiler { compiler, name } => {
            let compiler = find(compiler)?;
            let spec = process::ProcessSpec {
                program: &compiler.path,
                name: &compiler.called,
                args: &[OsString::from(format!("-print-prog-name={name}"))],
                environment: run.options.environment,
                directory: run.options.directory,
                terminal: None,
                claim: None,
            };
            let ended = run.options.children.run(usize::MAX, &spec)?;
            find(String::from_utf8_lossy(&ended.stdout).trim())
        }
        Program::Internal => Err(io::Error::other("not a program")),
    }
}
