//! Finds out whether a result contains the working directory although no input does.
//!
//! NVIDIA's tools ask for the directory in every run. They write it into debug information and packed code; there the key
//! contains it. Any other result is searched for it, because a tool that is not known well may write it too.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use memchr::memmem::Finder;
use warpcc_cache::regular_file;
use warpcc_plan::{Part, Step};

use crate::context::RunContext;
use crate::event::Finished;
use crate::module_id;
use crate::own_name::{self, collect};
use crate::relocate;
use crate::run_environment::directory_as_called;

/// Whether the output or a message of one of NVIDIA's tools names the directory in which the tool ran, by a word that
/// is in no input. The answer is also yes if an output cannot be read, or if the directory's name is in every path.
pub fn is_named(run: &RunContext<'_>, step: &Step, finished: &Finished) -> bool {
    let directory = run.options.directory;
    if !step.tool.is_of_toolkit()
        || relocate::directory(step, run.artifacts, run.options) != directory
    {
        return false;
    }
    if directory == Path::new("/") {
        return true;
    }
    let called = directory_as_called(run.options.variable("PWD"), directory);
    let mut names = std::iter::once(directory.as_os_str()).chain(called);
    names.any(|name| {
        words_of_result(run, step, finished, name.as_encoded_bytes())
            .and_then(|words| {
                Ok(!words.is_empty()
                    && !words.is_subset(&words_of_inputs(run, step, name.as_encoded_bytes())?))
            })
            .unwrap_or(true)
    })
}

fn words_of_result(
    run: &RunContext<'_>,
    step: &Step,
    finished: &Finished,
    name: &[u8],
) -> io::Result<BTreeSet<Vec<u8>>> {
    let finder = Finder::new(name);
    let mut words = BTreeSet::new();
    for said in [&finished.stdout, &finished.stderr] {
        collect(&finder, said, &mut words);
    }
    for &id in &step.writes {
        match collect_file(&finder, run.artifacts.path(id), &mut words) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !module_id::may_be_missing(run, step, id) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    let private = run.graph.private.as_bytes();
    words.retain(|word| private.is_empty() || !word.starts_with(private));
    Ok(words)
}

fn words_of_inputs(
    run: &RunContext<'_>,
    step: &Step,
    name: &[u8],
) -> io::Result<BTreeSet<Vec<u8>>> {
    let finder = Finder::new(name);
    let mut words = BTreeSet::new();
    for part in step.args.iter().flat_map(|arg| &arg.0) {
        let text = match part {
            Part::Text(text) => text.as_bytes(),
            Part::File(id) => run.artifacts.path(*id).as_os_str().as_encoded_bytes(),
        };
        collect(&finder, text, &mut words);
    }
    for &id in &step.reads {
        collect_file(&finder, run.artifacts.path(id), &mut words)?;
    }
    Ok(words)
}

/// As [`collect`], for a file, which is read into memory as a whole only if it contains the name.
fn collect_file(finder: &Finder<'_>, path: &Path, words: &mut BTreeSet<Vec<u8>>) -> io::Result<()> {
    if own_name::is_in_file(finder, path)? {
        collect(finder, &regular_file::read(path)?, words);
    }
    Ok(())
}
