//! The words of a command, each with a line that says what it does.
//!
//! The lines are ours, from watching what changes with and without an option; what is not known is
//! said to be so. A row is found by its whole name first, then by the longest beginning.

mod device;
mod front;
mod host;
mod macros;
mod row;

use warpcc_plan::{Program, Step, Tool};

use row::{Row, Takes};

use crate::explanation::{OptionRow, Variable};

/// The text for an option without a row.
pub const UNKNOWN: &str = "not described here";

fn tables(tool: Tool) -> &'static [&'static [Row]] {
    match tool {
        Tool::Preprocess => &[host::PREPROCESS, host::HOST],
        Tool::HostCompile | Tool::HostAssembly | Tool::Assemble | Tool::Clang => {
            &[host::COMPILE, host::HOST]
        }
        Tool::HostLink => &[host::LINK, host::HOST],
        Tool::CudaFe => &[front::CUDAFE, front::BOTH],
        Tool::Cicc | Tool::Nvvm => &[front::CICC, front::BOTH],
        Tool::Ptxas => &[device::PTXAS],
        Tool::Fatbinary => &[device::FATBINARY],
        Tool::Nvlink => &[device::NVLINK],
        Tool::Archive => &[host::ARCHIVE],
        Tool::FilterDependencies => &[],
    }
}

/// The words of `step`, with the files' paths in their places.
pub fn words(step: &Step, path: impl Fn(warpcc_plan::FileId) -> String) -> Vec<String> {
    use warpcc_plan::Part;
    let word = |arg: &warpcc_plan::Arg| {
        arg.0
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::File(id) => path(*id),
            })
            .collect::<String>()
    };
    step.args.iter().map(word).collect()
}

/// The program of `step`, as a word.
pub fn program(step: &Step) -> String {
    match &step.program {
        Program::Named(name) => name.clone(),
        Program::AskCompiler { compiler, name } => {
            format!("{name}, where {compiler} says it is")
        }
        Program::Internal => "nvcc itself".to_owned(),
    }
}

/// Explains the words of a command of `tool`.
pub fn explain(tool: Tool, words: &[String]) -> Vec<OptionRow> {
    let mut rows = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') || word == "-" {
            rows.push(described(word.clone(), operand(tool, word)));
            continue;
        }
        if host::is_host(tool) && word.starts_with("-D") {
            let definition = match word.len() {
                2 => rest.next().cloned().unwrap_or_default(),
                _ => word[2..].to_owned(),
            };
            rows.push(described(
                format!("-D{definition}"),
                macros::meaning(tool, &definition),
            ));
            continue;
        }
        let Some(found) = find(tool, word) else {
            rows.push(OptionRow {
                words: word.clone(),
                meaning: UNKNOWN.to_owned(),
                known: false,
            });
            continue;
        };
        let follows = match found.takes {
            Takes::Next => true,
            Takes::Either => found.name.len() == word.len(),
            Takes::Nothing | Takes::Rest => false,
        };
        let text = match rest.next_if(|_| follows) {
            Some(value) => format!("{word} {value}"),
            None => word.clone(),
        };
        rows.push(described(text, found.means.to_owned()));
    }
    rows
}

fn described(words: String, meaning: String) -> OptionRow {
    OptionRow {
        words,
        meaning,
        known: true,
    }
}

fn find(tool: Tool, word: &str) -> Option<&'static Row> {
    let rows = || tables(tool).iter().copied().flatten();
    let whole = rows().find(|row| row.name == word);
    whole.or_else(|| {
        rows()
            .filter(|row| {
                matches!(row.takes, Takes::Rest | Takes::Either) && word.starts_with(row.name)
            })
            .max_by_key(|row| row.name.len())
    })
}

/// A word that is no option.
fn operand(tool: Tool, word: &str) -> String {
    let ending = word.rsplit('.').next().unwrap_or_default();
    let means = match (tool, ending) {
        (Tool::Archive, "a") => "the library to put the objects into",
        (Tool::Archive, _) if !word.contains(['.', '/']) => {
            "replace members of that name, and make the library if it is not there"
        }
        (_, "ii") => "input: the preprocessed text",
        (_, "ptx") => "input: PTX, the virtual machine's assembly",
        (_, "cu") => "input: the CUDA source",
        (_, "cpp" | "cc" | "cxx" | "c") => "input: C or C++ source",
        (_, "stub") => "input: the source of the registration code that goes with a device link",
        (_, "o") => "input: an object",
        (_, "a") => "input: a library",
        (_, "cubin") => "input: machine code for a GPU",
        (_, "fatbin") => "input: a fat binary",
        _ => "input",
    };
    means.to_owned()
}

/// The purpose of nvcc's own variables, from the lines at the top of a dry run.
pub fn variable(name: &str, value: &str) -> Variable {
    let meaning = match name {
        "_NVVM_BRANCH_" => "the folder of the device compiler inside the toolkit",
        "_SPACE_" | "_TARGET_DIR_" => "a piece that nvcc.profile puts paths together from",
        "_CUDART_" => "the name of the CUDA runtime library",
        "_HERE_" => "where nvcc is",
        "_THERE_" => "where nvcc is, with links followed",
        "_TARGET_SIZE_" => "64-bit code",
        "CUDA_ROOT" => "the toolkit's folder",
        "TOP" => "the toolkit's folder, as nvcc.profile names it",
        "CICC_PATH" => "where cicc is",
        "NVVMIR_LIBRARY_DIR" => "libdevice: the mathematical functions for device code, as NVVM IR",
        "LD_LIBRARY_PATH" => "so that the toolkit's programs find its libraries",
        "PATH" => "so that the commands below are found by name",
        "INCLUDES" => "include folders for every preprocessor run",
        "SYSTEM_INCLUDES" => "include folders in which warnings are kept quiet",
        "LIBRARIES" => "library folders for nvlink and for the host's link",
        "CUDAFE_FLAGS" => "more options for cudafe++; usually none",
        "PTXAS_FLAGS" => "more options for ptxas; usually none",
        "CICC_FLAGS" | "OPENCC_FLAGS" => "more options for cicc; usually none",
        _ => "",
    };
    Variable {
        name: name.to_owned(),
        value: value.to_owned(),
        meaning: meaning.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(tool: Tool, line: &str) -> Vec<OptionRow> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        explain(tool, &words)
    }

    #[test]
    fn values_stay_with_their_options() {
        let rows = explained(
            Tool::Preprocess,
            "-D__CUDA_ARCH__=900 -E -x c++ -D TEXT=1 -isystem inc a.cu -o a.ii",
        );
        let words: Vec<&str> = rows.iter().map(|row| row.words.as_str()).collect();
        assert_eq!(
            words,
            [
                "-D__CUDA_ARCH__=900",
                "-E",
                "-x c++",
                "-DTEXT=1",
                "-isystem inc",
                "a.cu",
                "-o a.ii"
            ]
        );
        assert!(rows.iter().all(|row| row.known && !row.meaning.is_empty()));
        assert!(rows[0].meaning.contains("9.0"), "{}", rows[0].meaning);
    }

    #[test]
    fn unknown_options_are_shown_as_unknown() {
        let rows = explained(Tool::Ptxas, "--novel-thing -arch=sm_90 a.ptx");
        assert_eq!((rows[0].known, rows[0].meaning.as_str()), (false, UNKNOWN));
        assert!(rows[1].known && rows[2].known);
    }

    #[test]
    fn every_row_has_a_line_and_stands_once() {
        for tool in [
            Tool::Preprocess,
            Tool::HostCompile,
            Tool::HostLink,
            Tool::CudaFe,
            Tool::Cicc,
            Tool::Ptxas,
            Tool::Fatbinary,
            Tool::Nvlink,
            Tool::Archive,
        ] {
            let mut names = Vec::new();
            for row in tables(tool).iter().copied().flatten() {
                assert!(row.means.len() > 10, "{tool} {}", row.name);
                assert!(!names.contains(&row.name), "{tool} {} twice", row.name);
                names.push(row.name);
            }
        }
    }
}
