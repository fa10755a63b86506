//! Summarises a file, depending on the command that wrote it and the option that named it.
//!
//! A file's name says little: `-o` may give PTX any name. So its kind is that of the option before it, and only then
//! that of its ending.

mod cubin;
mod elf;
mod excerpt;
mod facts;
mod fatbin;
mod host_code;
mod known;
mod link_names;
mod module_id;
mod object;
mod preprocessed;
mod ptx;
mod section_names;
mod stub;

use warpcc_plan::{Arg, FileId, Part, Step, TaskGraph, Tool};

use crate::block::{Block, NamedValue};

use facts::{count, lines_of};
pub use known::{EarlierFiles, UserSource};

/// A file in words and pieces.
pub struct Inspection {
    /// The kind of file.
    pub what: &'static str,
    /// A summary of its content.
    pub blocks: Vec<Block>,
}

/// Inspects `bytes`, the file that step number `step` of `graph` wrote as `file`.
pub fn inspect(
    graph: &TaskGraph,
    step: usize,
    file: FileId,
    bytes: &[u8],
    known: &mut EarlierFiles,
) -> Inspection {
    let command = &graph.steps[step];
    let flag = flag_of(command, file);
    let name = graph.file(file).name();
    let text = || String::from_utf8_lossy(bytes);
    let (what, blocks) = match (command.tool, flag.as_str()) {
        (Tool::Preprocess, _) => (
            "the source with its headers put in and its macros replaced",
            preprocessed::blocks(command, &text(), known),
        ),
        (Tool::CudaFe | Tool::Cicc | Tool::Nvvm, "--module_id_file_name") => {
            let blocks = module_id::blocks(command, text().trim_end(), known);
            ("the module id", blocks)
        }
        (Tool::CudaFe, _) => (
            "the host's half of the source, as C++",
            host_code::blocks(&text(), known),
        ),
        (Tool::Cicc | Tool::Nvvm, "--stub_file_name") => {
            ("the stub: launches and registration", stub::blocks(&text()))
        }
        (Tool::Cicc | Tool::Nvvm, "--gen_device_file_name") => (
            "the device's half of the source, as plain C",
            host_code::device_blocks(&text(), known),
        ),
        (Tool::Cicc | Tool::Nvvm, "--gen_c_file_name") => (
            "what is left of the unit besides its device code, as C",
            vec![Block::facts("", vec![lines_of(&text())])],
        ),
        (Tool::Cicc | Tool::Nvvm, "-o") if is_ptx(bytes) => {
            ("PTX, assembly for a virtual GPU", ptx::blocks(&text()))
        }
        (Tool::Cicc | Tool::Nvvm, _) => (
            "intermediate code",
            vec![Block::text(intermediate(command, bytes))],
        ),
        (Tool::Ptxas, _) => (
            "a cubin, machine code for one GPU architecture",
            cubin::blocks(bytes),
        ),
        (Tool::Nvlink, "--register-link-binaries=") => (
            "the names of the objects that were linked, for their registration",
            link_names::blocks(&text()),
        ),
        (Tool::Nvlink, _) => (
            "a cubin, linked: machine code of all objects for one GPU architecture",
            cubin::blocks(bytes),
        ),
        (Tool::Fatbinary, "--embedded-fatbin=") => (
            "the fat binary as a C file for the host compiler",
            fatbin::c_blocks(&text()),
        ),
        (Tool::Fatbinary, _) => ("a fat binary", fatbin::blocks(bytes)),
        (Tool::Clang, _) if is_ptx(bytes) => {
            ("PTX, assembly for a virtual GPU", ptx::blocks(&text()))
        }
        (Tool::HostCompile | Tool::HostAssembly | Tool::Assemble | Tool::Clang, _) => {
            ("a host object", object::blocks(bytes, known))
        }
        (Tool::HostLink, _) => ("the program", object::blocks(bytes, known)),
        (Tool::Archive, _) => ("a static library", object::library_blocks(bytes)),
        (Tool::FilterDependencies, _) => (
            "a rule for make: what the output depends on",
            dependencies(&text()),
        ),
    };
    let what = match (command.tool, name) {
        (Tool::HostLink, name) if name.ends_with(".so") => "a shared library",
        _ => what,
    };
    Inspection { what, blocks }
}

/// The option that names `file` in the command, with its `=` where it has one.
fn flag_of(step: &Step, file: FileId) -> String {
    let holds = |arg: &Arg| arg.0.contains(&Part::File(file));
    let Some(at) = step.args.iter().position(holds) else {
        return String::new();
    };
    match step.args[at].0.as_slice() {
        [Part::Text(flag), Part::File(_), ..] => flag.clone(),
        _ => at
            .checked_sub(1)
            .and_then(|before| step.args[before].as_text())
            .unwrap_or_default()
            .to_owned(),
    }
}

fn is_ptx(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    std::str::from_utf8(head).is_ok_and(|text| text.contains(".version"))
}

fn intermediate(step: &Step, bytes: &[u8]) -> String {
    let begins: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
    let what = if step
        .args
        .iter()
        .any(|arg| arg.as_text() == Some("--emit-optix-ir"))
    {
        "OptiX's intermediate code, which its driver compiles"
    } else {
        "Intermediate code (NVVM IR): not optimised to the end, because nvlink compiles it once it \
         has seen the other objects"
    };
    format!(
        "{what}. A binary format of NVIDIA's; it begins with the bytes {}.",
        begins.join(" ")
    )
}

fn dependencies(text: &str) -> Vec<Block> {
    let target = text.split(':').next().unwrap_or_default().trim();
    let files = text.split_once(':').map_or(0, |(_, rest)| {
        rest.split_whitespace().filter(|w| *w != "\\").count()
    });
    vec![
        Block::facts(
            "",
            vec![
                NamedValue::new("target", target),
                NamedValue::here("files it depends on", count(files as u64)),
            ],
        ),
        Block::excerpt("Its first lines", text.lines().take(4)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_too_strange() {
        let known = EarlierFiles {
            sources: vec![UserSource {
                path: "a".into(),
                lines: vec!["k<<<".into()],
            }],
            ..EarlierFiles::default()
        };
        for text in [
            "",
            "#",
            "# 1 \"a\"\n(__cudaPushCallConfiguration(",
            "# 18446744073709551616 \"a",
            "__cudaRegisterEntry(",
            "__cudaRegisterEntry(a,b",
            "__cudaRegisterVariable()",
            "{__device_stub__é",
            "__device_stub____cudaLaunchPrologue}}}})))é{{{",
            "{ 0x466243b1",
            "{ 0x1, 2, 3 }",
            ".entry (\n.param [",
            "DEFINE_REGISTER_FUNC(",
            ".visible .entry é(\n\t.param .u64 é[\n}\n}",
        ] {
            host_code::blocks(text, &known);
            host_code::device_blocks(text, &known);
            stub::blocks(text);
            ptx::blocks(text);
            fatbin::c_blocks(text);
            fatbin::blocks(text.as_bytes());
            cubin::blocks(text.as_bytes());
            object::blocks(text.as_bytes(), &known);
            object::library_blocks(text.as_bytes());
            link_names::blocks(text);
            dependencies(text);
        }
    }
}
