//! Finds out whether a host compiler is gcc, and which of its options change only the code in the object.

use crate::step::{Program, Step};

/// Arguments of gcc whose effect does not depend on line numbers.
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

/// Beginnings of such arguments.
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

/// A disabled feature of gcc writes no line numbers.
const UNDONE: &str = "-fno-";

/// Parts of names by which a macro of the command line may ask for lines.
const ASKS: [&str; 3] = ["LINE", "COLUMN", "source_location"];

/// Whether the program of a host step is gcc, by its name.
pub(crate) fn is_gcc(step: &Step) -> bool {
    let Program::Named(program) = &step.program else {
        return false;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let names = ["gcc", "g++", "c++", "cc"];
    names.iter().any(|n| name.split('-').any(|part| part == *n))
}

/// Whether it is known that an argument of gcc changes only the code in its output, and that the code does not depend on
/// line numbers.
pub(crate) fn is_known(arg: &str) -> bool {
    if ASKS.iter().any(|word| arg.contains(word)) {
        return false;
    }
    // A warning that is switched on can only add messages, and a result with messages is not shared between texts with other
    // lines.
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
        // Such a file contains more arguments.
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
