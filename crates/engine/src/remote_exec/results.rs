//! Takes in the outputs from another machine: moves each to where the tool here would have written it.

use std::fs;

use warpcc_cache::command::Done;
use warpcc_plan::{FileKind, Step, Tool};

use super::names::{KEEP, MARK};
use crate::context::RunContext;
use crate::module_id;
use crate::private_folder::replace;
use crate::warning_history;

/// The end of a module id that contains cudafe++'s process id, as CUDA 13 writes it for a source that defines nothing. In a
/// cluster's sandboxes every process has the same process id.
const NAMELESS: &[u8] = b"ba747b4a_";

/// Moves the outputs from the other machine to where the tool here would have written them, and returns the tool's messages.
/// Returns `None` if a run here might have another result.
pub fn take_in(
    run: &RunContext<'_>,
    step: &Step,
    done: &Done,
    names: &[(String, String)],
) -> Option<(Vec<u8>, Vec<u8>)> {
    // A step that failed there runs here before its failure is shown.
    if done.code != 0 || done.outputs.len() != step.writes.len() {
        return None;
    }
    // gcc's messages show source lines, and the sources are not there.
    let is_host = matches!(step.tool, Tool::HostCompile | Tool::HostAssembly);
    let talked = !(done.stdout.is_empty() && done.stderr.is_empty());
    warning_history::learn_messages(run, step, talked);
    if is_host && talked {
        return None;
    }
    // For a terminal the message would have been formatted differently.
    if run.options.terminal.is_some() && !done.stderr.is_empty() {
        return None;
    }
    let private = run.graph.private.as_bytes();
    let as_here = |bytes: &[u8]| {
        let mut text = bytes.to_vec();
        for (there, here) in names {
            text = replace(&text, there.as_bytes(), here.as_bytes());
        }
        let text = replace(&text, KEEP.as_bytes(), private);
        memchr::memmem::find(&text, MARK.as_bytes())
            .is_none()
            .then_some(text)
    };
    let streams = (as_here(&done.stdout)?, as_here(&done.stderr)?);
    let mut ready = Vec::with_capacity(step.writes.len());
    for (&id, from) in step.writes.iter().zip(&done.outputs) {
        let file = run.graph.file(id);
        let Some(from) = from else {
            // With -optix-ir, cicc gets the name of a module id file and does not write it.
            if step.tool == Tool::Cicc && file.is_module_id() {
                continue;
            }
            return None;
        };
        let mut bytes = fs::read(from).ok()?;
        if !names.is_empty() && memchr::memmem::find(&bytes, MARK.as_bytes()).is_some() {
            for (there, here) in names {
                bytes = replace(&bytes, there.as_bytes(), here.as_bytes());
            }
            fs::write(from, &bytes).ok()?;
        }
        if memchr::memmem::find(&bytes, MARK.as_bytes()).is_some() {
            // Only the stub contains its own name.
            let is_stub = file.kind == FileKind::Temp && file.path.ends_with(".stub.c");
            let text = as_here(&bytes).filter(|_| is_stub)?;
            fs::write(from, text).ok()?;
        }
        if file.is_module_id() && memchr::memmem::find(&bytes, NAMELESS).is_some() {
            return None;
        }
        ready.push((id, from));
    }
    // Below mapped folders, a front end must run here once more, with a module id that is the same everywhere.
    if !run.options.path_map.is_empty() && matches!(step.tool, Tool::CudaFe | Tool::Cicc) {
        let written = |id| ready.iter().find(|(of, _)| *of == id);
        let written = |id| written(id).map(|(_, from)| from.as_path());
        if module_id::lasting_module_id(run, step, &written).is_some() {
            return None;
        }
    }
    for (id, from) in ready {
        let to = run.options.directory.join(run.artifacts.path(id));
        if fs::rename(from, &to).is_err() {
            fs::copy(from, &to).ok()?;
        }
        run.artifacts.written(id);
    }
    Some(streams)
}
