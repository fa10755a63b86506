//! Whether the lines of a source can show in what a plan makes.
//!
//! The tools of CUDA write lines down for debug information only. The host compiler has more uses for them: coverage, profiles,
//! sanitizers, link-time code. So each of its arguments must be one that is known to have nothing to do with lines; any other is a
//! reason to let them count.

use crate::graph::TaskGraph;
use crate::overlap::is_gcc;
use crate::step::{Arg, FileId, FileKind, Step, Tool};

/// Arguments of gcc whose effect is the same on whatever line a word stands.
const WHOLE: [&str; 32] = [
    "-c",
    "-S",
    "-o",
    "-x",
    "-w",
    "-ansi",
    "-pipe",
    "-pthread",
    "-D",
    "-U",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-fopenmp",
    "-fpermissive",
    "-fexceptions",
    "-ffunction-sections",
    "-fdata-sections",
    "-ffast-math",
    "-fwrapv",
    "-funroll-loops",
    "-fomit-frame-pointer",
    "-fsigned-char",
    "-fstack-clash-protection",
    "-fasynchronous-unwind-tables",
    "-g0",
    "--",
];

/// How such arguments may begin.
const BEGINNINGS: [&str; 17] = [
    "-O",
    "-std=",
    "-D",
    "-U",
    "-I",
    "-isystem",
    "-m",
    "-fvisibility",
    "-fstack-protector",
    "-fcf-protection",
    "-fdiagnostics-color",
    "-ffp-contract=",
    "-ftls-model=",
    "-fabi-version=",
    "-fmessage-length=",
    "-fmax-errors=",
    "-Wno-",
];

/// A disabled feature of gcc shows no lines.
const UNDONE: &str = "-fno-";

/// The option by which nvcc tells cudafe++ that the host compiler is gcc, whatever its name is. clang writes the line of a closure into its type's name.
const FOR_GCC: &str = "--gnu_version=";

/// Names by which a macro of the command line may ask for lines.
const ASKS: [&str; 3] = ["LINE", "COLUMN", "source_location"];

/// Whether results are the same for a source with other lines: no step has an option that writes lines, and no option is unknown.
pub fn never_show(graph: &TaskGraph) -> bool {
    // With `-keep`, the files between the steps are results, too.
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

fn is_known(arg: &str) -> bool {
    if ASKS.iter().any(|word| arg.contains(word)) {
        return false;
    }
    // A warning switched on changes messages at most, and what has messages is not shared between lines.
    let warns = arg.strip_prefix("-W").is_some_and(|rest| {
        rest.bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'=' | b'+'))
    });
    match arg.as_bytes() {
        [b'-', ..] => {
            WHOLE.contains(&arg)
                || warns
                || arg.starts_with(UNDONE)
                || BEGINNINGS
                    .iter()
                    .any(|beginning| arg.starts_with(beginning))
        }
        // A file with more arguments.
        [b'@', ..] => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_write_lines_are_not_known() {
        for arg in [
            "-g",
            "-g3",
            "-ggdb",
            "--coverage",
            "-fprofile-arcs",
            "-ftest-coverage",
            "-fprofile-use",
            "-fsanitize=address",
            "-flto",
            "-fplugin=x.so",
            "@words",
            "-Wa,-a",
            "-Wp,-x",
            "-fdump-tree-all",
            "-pg",
            "-save-temps",
            "-finstrument-functions",
            "-fopenacc",
            "-fauto-profile",
            "-fstack-usage",
            "-fcallgraph-info",
            "-specs=x",
            "-B.",
            "-imacros",
            "-DX=__LINE__",
            "X=__builtin_COLUMN()",
        ] {
            assert!(!is_known(arg), "{arg}");
        }
        for arg in [
            "-O3",
            "-Wall",
            "-Wno-psabi",
            "-Werror=format",
            "-fno-strict-aliasing",
            "-m64",
            "a.cpp",
            "-DX=\"-g\"",
        ] {
            assert!(is_known(arg), "{arg}");
        }
    }
}
