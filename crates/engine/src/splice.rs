//! Inserts the fat binary into the assembly of a host compile that ran without it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use warpcc_plan::{FileId, Step, overlap};

use crate::context::RunContext;
use crate::pieces;

/// The host compiler or fatbinary wrote a text that the split does not expect.
pub const NOT_SPLICED: &str = "the fat binary does not fit into the assembly";
/// Why a host compile is not split in two when the second run printed a message: nvcc starts the compiler once, and a
/// wrapper that prints in each run would print twice.
pub const SAID_SOMETHING: &str = "the host compiler printed messages while it assembled";

/// Writes the assembly with the fat binary in it.
pub fn splice(run: &RunContext<'_>, step: &Step) -> io::Result<(FileId, PathBuf)> {
    let [assembly, fatbin] = step.reads[..] else {
        return Err(io::Error::other(NOT_SPLICED));
    };
    let text = pieces::read_whole(run.artifacts.path(assembly))?;
    let numbers = pieces::read_whole(run.artifacts.path(fatbin))?;
    let whole = overlap::splice(&text, &numbers).ok_or_else(|| io::Error::other(NOT_SPLICED))?;
    let path = run.artifacts.path(assembly).with_extension("whole.s");
    let mut file = File::create(&path)?;
    for part in [whole.before, whole.numbers.as_bytes(), whole.after] {
        file.write_all(part)?;
    }
    Ok((assembly, path))
}
