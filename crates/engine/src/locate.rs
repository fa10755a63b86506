//! Finds a step's program where nvcc's shell would.

use std::io;

use warpcc_plan::{Program, Step};

use crate::compiler_cache;
use crate::context::RunContext;
use crate::located::Located;
use crate::search_path;
use crate::traced_inputs::TracedInputs;
use crate::watched_run;

/// Finds the program of the step with this index.
///
/// # Errors
/// It is not there, or the compiler that knows it cannot be asked.
pub fn locate(run: &RunContext<'_>, index: usize, step: &Step) -> io::Result<Located> {
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
            seen: TracedInputs::default(),
            messages: Vec::new(),
        })
    };
    match &step.program {
        Program::Named(name) => find(name),
        Program::AskCompiler { compiler, name } => {
            let compiler = find(compiler)?;
            let question = format!("-print-prog-name={name}");
            let (ended, seen) = watched_run::ask(run, index, step, &compiler, &question)?;
            let found = find(String::from_utf8_lossy(&ended.stdout).trim())?;
            Ok(Located {
                seen,
                messages: ended.stderr,
                ..found
            })
        }
        Program::Internal => Err(io::Error::other("not a program")),
    }
}
