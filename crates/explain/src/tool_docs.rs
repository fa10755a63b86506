//! Explains the purpose of a command, as a heading and a few sentences.

use warpcc_plan::{Arg, FileKind, Step, TaskGraph, Tool};

/// The heading and the sentences for a step.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn describe(graph: &TaskGraph, step: &Step) -> (String, String) {
    let arch = step.arch.as_deref().unwrap_or_default();
    let has = |word: &str| step.args.iter().any(|arg| arg.as_text() == Some(word));
    let input = step
        .reads
        .first()
        .map_or("", |&id| graph.file(id).name())
        .to_owned();
    match step.tool {
        Tool::Preprocess if !is_plain(graph, step) => (
            "Preprocess the host's half".to_owned(),
            "`-cuda` asks for all that the host compiler would compile, in one file: the host's C++ \
             with the stub and the fat binary put in."
                .to_owned(),
        ),
        Tool::Preprocess if arch.is_empty() => (
            format!("Preprocess {input} for the host"),
            "A CUDA source is compiled several times: once for the host, once for each virtual \
             architecture. Each of them begins with its own preprocessor run, because macros differ \
             between them."
                .to_owned(),
        ),
        Tool::Preprocess => (
            format!("Preprocess {input} for {arch}"),
            "The same source once more, now with `__CUDA_ARCH__` defined: device code may be written \
             differently for each architecture, and the host's text does not say how."
                .to_owned(),
        ),
        Tool::CudaFe => (
            format!("Take the host's half out of {}", source(step).unwrap_or(&input)),
            "cudafe++ parses all of the source, takes device code away, and writes C++ that any host \
             compiler understands. Launches become calls. It also makes the module id."
                .to_owned(),
        ),
        Tool::Cicc if has("-lto") || has("-olto") => (
            format!("Compile the device's half for {arch}, to be optimised when it is linked"),
            "cicc parses the source again and keeps device code only. For link-time optimisation it \
             stops early and writes intermediate code; nvlink finishes the work when it has seen \
             all objects. It also writes the stub: the host functions behind launches."
                .to_owned(),
        ),
        Tool::Cicc | Tool::Nvvm => (
            format!("Compile the device's half for {arch}"),
            "cicc parses the source again, keeps device code only, optimises it and writes PTX. This \
             is where most of the time goes. It also writes the stub: the host functions behind \
             launches, and the constructor that registers kernels."
                .to_owned(),
        ),
        Tool::Ptxas if step.writes.is_empty() => (
            format!("Check the PTX for {arch}"),
            "No machine code was asked for, only PTX. ptxas runs without an output all the same: \
             when it refuses the PTX, so does nvcc."
                .to_owned(),
        ),
        Tool::Ptxas => (
            format!("Assemble {input} for {arch}"),
            "ptxas turns PTX into machine code of one real architecture: it chooses instructions, \
             schedules them and assigns registers."
                .to_owned(),
        ),
        Tool::Fatbinary if has("-link") => (
            "Pack the linked device code".to_owned(),
            "The device link's images go into a fat binary of their own, which the registration code \
             of the link brings into the program."
                .to_owned(),
        ),
        Tool::Fatbinary => (
            "Pack all images into one fat binary".to_owned(),
            "Machine code for several architectures, PTX and intermediate code go into one file. The \
             same bytes are written as a C file too, so that the host compiler can include them."
                .to_owned(),
        ),
        Tool::Nvlink => (
            format!("Link the device code for {arch}"),
            "With -rdc=true, functions and variables of the device may be defined in another object. \
             nvlink finds the device code in all objects and libraries, fills in the addresses, and \
             notes which objects took part."
                .to_owned(),
        ),
        Tool::HostCompile if is_link_stub(step) => (
            "Compile the registration code of the device link".to_owned(),
            "A source of the toolkit's, link.stub, includes two files by macros: the linked fat binary \
             and the list of objects. It defines the functions that each object's constructor calls."
                .to_owned(),
        ),
        Tool::HostCompile if is_plain(graph, step) => (
            format!("Compile {input}"),
            "No CUDA in it: nvcc only calls the host compiler.".to_owned(),
        ),
        Tool::HostCompile | Tool::HostAssembly | Tool::Assemble => (
            "Compile the host's half, with the fat binary in it".to_owned(),
            "The host compiler sees C++ that includes the stub, which includes the fat binary. Which \
             architecture's stub that is does not matter: they register the same kernels."
                .to_owned(),
        ),
        Tool::Clang => (
            format!("Compile {input} for {arch}"),
            "clang preprocesses and compiles the whole source once for the host, and once for each \
             architecture of a device."
                .to_owned(),
        ),
        Tool::HostLink => (
            format!("Link {}", output(graph, step)),
            "The host linker knows nothing of GPUs. The CUDA runtime is linked in, and the \
             constructors of all objects are put into one array that runs before main."
                .to_owned(),
        ),
        Tool::Archive => (
            format!("Put the objects into {}", output(graph, step)),
            "A static library is objects side by side. A device link looks into it for device code."
                .to_owned(),
        ),
        Tool::FilterDependencies => (
            "Write the dependencies".to_owned(),
            "No program runs: nvcc reads the preprocessed texts itself, and writes down the files that \
             they name."
                .to_owned(),
        ),
    }
}

/// The source as the user named it.
fn source(step: &Step) -> Option<&str> {
    let named = |arg: &Arg| arg.as_text() == Some("--orig_src_file_name");
    let at = step.args.iter().position(named)?;
    let path = step.args.get(at + 1)?.as_text()?;
    path.rsplit('/').next()
}

fn output(graph: &TaskGraph, step: &Step) -> String {
    step.writes
        .first()
        .map_or("", |&id| graph.file(id).name())
        .to_owned()
}

fn is_link_stub(step: &Step) -> bool {
    let is = |arg: &Arg| matches!(arg.0.first(), Some(warpcc_plan::Part::Text(text)) if text.starts_with("-DREGISTERLINKBINARYFILE="));
    step.args.iter().any(is)
}

/// Whether all that it reads was there before.
fn is_plain(graph: &TaskGraph, step: &Step) -> bool {
    step.reads
        .iter()
        .all(|&id| graph.file(id).kind == FileKind::External)
}
