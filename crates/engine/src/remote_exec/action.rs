//! Packs a step for another machine: the files to send, and the command to run.

use std::path::Path;

use warpcc_plan::{Arg, Part, Step, Tool};

use super::builder::{ActionBuilder, Packed};
use super::compiler::is_clang;
use super::names::{self, KEEP};
use super::{clang, host, link};
use crate::context::RunContext;
use crate::key::packs_directory;
use crate::located::Located;

/// The folder of a command on the other machine, by a path that is valid on each.
const THERE: &str = "/proc/self/cwd/";

/// Packs `step`; `folder` is an empty private folder. Returns `None` if the step must run here.
pub fn pack(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    folder: &Path,
) -> Option<Packed> {
    match step.tool {
        Tool::HostCompile | Tool::HostAssembly => {
            let is_cpp = |arg: &Arg| arg.as_text() == Some("c++");
            if !step.args.iter().any(is_cpp) {
                return None;
            }
            match is_clang(&program.path) {
                true => clang::pack_clang(run, index, step, program, folder),
                false => host::pack_gcc(run, index, step, program, folder),
            }
        }
        Tool::Nvlink => link::pack_link(run, step, program),
        _ => pack_tool(run, step, program, folder),
    }
}

/// Packs a tool that reads only the files that the plan lists.
fn pack_tool(
    run: &RunContext<'_>,
    step: &Step,
    program: &Located,
    folder: &Path,
) -> Option<Packed> {
    let mut builder = ActionBuilder::new(run, step.tool)?;
    let packs = packs_directory(step, run.graph);
    if packs {
        builder.pack_programs();
    }
    let mut arguments = builder.add_program(&program.path)?;
    if step.tool == Tool::Cicc {
        let folder = Path::new(run.options.variable("NVVMIR_LIBRARY_DIR")?);
        let library = folder.join("libdevice.10.bc");
        builder.add("tc/libdevice/libdevice.10.bc".to_owned(), &library, false)?;
        let variable = ("NVVMIR_LIBRARY_DIR".to_owned(), "tc/libdevice".to_owned());
        builder.environment.push(variable);
    }
    if packs {
        arguments.splice(1..1, builder.stand_in(step, folder)?);
    }
    builder.add_reads(step)?;
    for arg in &step.args {
        let is_file = matches!(arg.0[..], [Part::File(_)]);
        // cicc makes relative names absolute with the directory that it is given.
        let before = if packs && is_file { THERE } else { "" };
        arguments.push(format!("{before}{}", names::word(run, arg)?));
    }
    let mut packed = builder.close(step, arguments)?;
    if packs {
        let private = run.graph.private.clone();
        packed.names.push((format!("{THERE}{KEEP}"), private));
    }
    Some(packed)
}
