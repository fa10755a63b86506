//! Module ids that are the same in every run: a front end's process id is replaced by a hash of its input.

use std::fs;
use std::path::Path;

use warpcc_cache::{Digest, Hashing, KeySink};
use warpcc_plan::{Arg, FileId, Step, Tool, prediction};

use crate::artifact::Artifacts;
use crate::context::RunContext;

/// If there is no external function to name a module after, a front end ends its id with the CRC-32 of its directory and its
/// process id. Returns an id that is made from the inputs instead; `None` if the id can stay.
fn lasting(id: &str, step: &Step, artifacts: &Artifacts<'_>) -> Option<String> {
    if id.is_empty() || prediction::is_lasting_module_id(id) {
        return None;
    }
    let (head, _) = id.trim_end().rsplit_once('_')?;
    let (head, _) = head.rsplit_once('_')?;
    let mut sink = Hashing::new("warpcc lasting module id 1");
    sink.part("head", head.as_bytes());
    for arg in step.args.iter().filter_map(Arg::as_text) {
        sink.part("argument", arg.as_bytes());
    }
    for id in step
        .reads
        .iter()
        .filter_map(|id| artifacts.digest(*id).ok())
    {
        sink.part("input", Digest::to_string(&id).as_bytes());
    }
    // The letter before the digits tells it from a process id.
    Some(format!("{head}_w{}", &sink.finish().hex()[..15]))
}

/// The module id in the names of a device code's internal symbols, if there are any: when cicc makes the id itself (`-ptx`,
/// `-cubin`), it writes no file with the id (seen on 13.0 and 13.5).
fn module_id_in(code: &[u8]) -> Option<String> {
    // Each name starts with a length: that of the mark and the id, or of the id alone.
    [("_INTERNAL_", 9), ("_GLOBAL__N_", 11)]
        .into_iter()
        .find_map(|(mark, counted)| {
            memchr::memmem::find_iter(code, mark).find_map(|at| {
                let digits = code[..at].iter().rev().take_while(|b| b.is_ascii_digit());
                let number = &code[at - digits.count()..at];
                let length: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
                let id = code.get(at + counted..at.checked_add(length)?)?;
                let is_id = id.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
                (is_id && id.len() > 10).then(|| String::from_utf8_lossy(id).into_owned())
            })
        })
}

/// The flag that makes a front end write a module id; without it the file is read.
pub const MAKES_MODULE_ID: &str = "--gen_module_id_file";

/// The file of a module id, and its new content if the id contains a process id; `written` returns the current path of a
/// result.
pub fn lasting_module_id<'p>(
    run: &RunContext<'_>,
    step: &Step,
    written: &dyn Fn(FileId) -> Option<&'p Path>,
) -> Option<(FileId, String)> {
    let is_id = |id: &FileId| run.graph.file(*id).is_module_id();
    let file = step.writes.iter().copied().find(is_id)?;
    let others = step.writes.iter().copied().filter(|&id| id != file);
    let known = written(file).and_then(|path| fs::read_to_string(path).ok());
    let id = known.or_else(|| {
        others
            .filter_map(|id| fs::read(written(id)?).ok())
            .find_map(|code| module_id_in(&code))
    })?;
    let lasting = lasting(&id, step, run.artifacts)?;
    Some((file, lasting))
}

/// With -optix-ir, cicc gets the name of a module id file and does not write it.
pub fn may_be_missing(run: &RunContext<'_>, step: &Step, id: FileId) -> bool {
    step.tool == Tool::Cicc && run.graph.file(id).is_module_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_behind_its_length() {
        let ptx = b".global .u32 _ZN40_INTERNAL_aa38fbbf_4_n_cu_506184d9_3123042_GLOBAL__N__aa38fbbf_4_n_cu_506184d9_312301dE;";
        assert_eq!(
            module_id_in(ptx).as_deref(),
            Some("_aa38fbbf_4_n_cu_506184d9_31230")
        );
        let kernel = b".entry _ZN42_GLOBAL__N__aa38fbbf_4_n_cu_506184d9_312301kEPi(";
        assert_eq!(
            module_id_in(kernel).as_deref(),
            Some("_aa38fbbf_4_n_cu_506184d9_31230")
        );
        for none in [&b"_INTERNAL_"[..], b"9_INTERNAL_", b"99_GLOBAL__N_x"] {
            assert_eq!(module_id_in(none), None);
        }
    }
}
