//! Finds out whether the results of a plan can contain the line numbers of a source.
//!
//! CUDA's tools write line numbers for debug information only. The host compiler has more uses for them: coverage,
//! profiles, sanitizers, link-time code. So lines count unless each of its arguments is known to have nothing to do
//! with lines.

use crate::gcc_options::{is_gcc, is_known};
use crate::graph::TaskGraph;
use crate::step::{Arg, FileId, FileKind, Step, Tool};

/// The option by which nvcc tells cudafe++ that the host compiler is gcc, under whatever name. clang writes the line of a
/// closure into its type's name.
const FOR_GCC: &str = "--gnu_version=";

/// Whether results are the same for a source with other line numbers: no step has an option that writes them, and no option
/// is unknown.
pub fn never_show(graph: &TaskGraph) -> bool {
    // With `-keep`, the files between the steps are results too.
    !graph.private.is_empty() && graph.steps.iter().all(|step| step_has_none(graph, step))
}

fn step_has_none(graph: &TaskGraph, step: &Step) -> bool {
    if step.has_debug_information() {
        return false;
    }
    let is_output = |&id: &FileId| graph.file(id).kind == FileKind::Output;
    match step.tool {
        Tool::CudaFe => {
            let mut args = step.args.iter().filter_map(Arg::as_text);
            args.any(|arg| arg.starts_with(FOR_GCC))
        }
        // With `-cuda` the user gets the host code, full of line markers.
        Tool::Preprocess => !step.writes.iter().any(is_output),
        Tool::HostCompile | Tool::HostAssembly | Tool::Assemble => {
            is_gcc(step) && step.args.iter().filter_map(Arg::as_text).all(is_known)
        }
        _ => true,
    }
}
