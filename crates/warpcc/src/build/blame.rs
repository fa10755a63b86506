//! Decides whether a failure is the source's fault. If it may be the plan's fault, plain nvcc runs: a new release may need
//! something that its dry run does not show, and a tool may dislike a word that warpcc passes on.
//!
//! Such a failure is the source's fault if the tool names a place in a source, and if warpcc was tried with this release.

use std::ops::RangeInclusive;

use memchr::memmem;
use warpcc_engine::Finished;
use warpcc_engine::event::StepOutcome;
use warpcc_plan::{Arg, TaskGraph, Unsupported};

/// The releases that warpcc was tried with: docs/compatibility.md.
const TRIED: RangeInclusive<(u32, u32)> = (11, 8)..=(13, 5);

/// A tool fails without a word about the source. It may not have understood its command.
pub const WITHOUT_A_PLACE: &str = "a failing step names no place in a source";

/// nvcc's dry run may mean something that older ones do not say.
pub const UNTRIED_RELEASE: &str =
    "a failing build with a CUDA release that warpcc was not tried with";

/// Fails if nvcc may succeed where this run failed.
pub(super) fn check(graph: &TaskGraph, tasks: &[Finished]) -> Result<(), Unsupported> {
    if let Some((major, minor)) = release(graph)
        && !TRIED.contains(&(major, minor))
    {
        return Err(Unsupported::new(
            UNTRIED_RELEASE,
            format!("{major}.{minor}"),
        ));
    }
    let mut failed = tasks
        .iter()
        .filter(|task| matches!(task.outcome, StepOutcome::Failed(_)));
    let without = failed.find(|task| !names_a_place(&task.stderr) && !names_a_place(&task.stdout));
    match without {
        Some(task) => {
            let tool = graph.steps[task.step].tool.name();
            Err(Unsupported::new(WITHOUT_A_PLACE, tool))
        }
        None => Ok(()),
    }
}

/// The release of CUDA that compiles, which nvcc gives to every preprocessor. `None` where nothing is preprocessed.
fn release(graph: &TaskGraph) -> Option<(u32, u32)> {
    let value = |macro_name: &str| {
        let mut words = graph
            .steps
            .iter()
            .flat_map(|step| step.args.iter().filter_map(Arg::as_text));
        let text = words.find_map(|word| word.strip_prefix(macro_name))?;
        text.parse::<u32>().ok()
    };
    Some((
        value("-D__CUDACC_VER_MAJOR__=")?,
        value("-D__CUDACC_VER_MINOR__=")?,
    ))
}

/// Whether a tool's messages say where in a source, an assembly or an object an error is:
///
/// - gcc, clang, as: `a.cu:3:10: fatal error: …`, `a.s:12: Error: …`
/// - cudafe++, cicc: `a.cu(3): error: …`
/// - ptxas: `ptxas a.ptx, line 3; error   : …`
/// - ptxas of a whole kernel: `Unresolved extern function`, `uses too much shared data`
/// - linkers: `undefined reference to`, `multiple definition of`
fn names_a_place(messages: &[u8]) -> bool {
    let mut lines = messages.split(|&byte| byte == b'\n');
    lines.any(|line| {
        let contains = |text: &str| memmem::find(line, text.as_bytes()).is_some();
        // gcc translates the word "error".
        (has_line_number(line) && !contains("warning"))
            || contains("undefined reference to")
            || contains("Undefined reference to")
            || contains("multiple definition of")
            || contains("Unresolved extern function")
            || contains("uses too much")
    })
}

/// Whether a line contains `:3:`, `(3):` or `line 3;`, and more after it.
fn has_line_number(line: &[u8]) -> bool {
    let is_number_at = |start: usize, end: &str| {
        let digits = line[start..].iter().take_while(|b| b.is_ascii_digit());
        let after = start + digits.count();
        let rest = line[after..].strip_prefix(end.as_bytes());
        after > start && rest.is_some_and(|rest| !rest.is_empty())
    };
    [(":", ":"), ("(", "):"), ("line ", ";")]
        .iter()
        .any(|(before, end)| {
            memmem::find_iter(line, before).any(|at| is_number_at(at + before.len(), end))
        })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn errors_in_sources_name_a_place() {
        for text in [
            "a.cu:3:10: fatal error: none.h: No such file or directory",
            "In file included from a.cu:1:\nb.h:2:2: error: #error no",
            "a.cu:3:10: schwerwiegender Fehler: none.h: Datei oder Verzeichnis nicht gefunden",
            "a.cu(3): error: identifier \"x\" is undefined",
            "/k/a.cpp4.ii(3): catastrophic error: could not open source file",
            "a.cu(3): Error: Formal parameter space overflowed",
            "ptxas /k/a.ptx, line 14; error   : Not a name of any known instruction: 'nothing'",
            "/tmp/ccX.s: Assembler messages:\n/tmp/ccX.s:12: Error: no such instruction: `x'",
            "/usr/bin/ld: a.o: in function `main':\na.cu:(.text+0x5): undefined reference to `f()'",
            "nvlink error   : Undefined reference to '_Z1fv' in 'a.o'",
            "ptxas fatal   : Unresolved extern function '_Z1fv'",
            "ptxas error   : Entry function '_Z1kv' uses too much shared data (0x20000 bytes, 0xc000 max)",
        ] {
            assert!(names_a_place(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn errors_of_commands_do_not() {
        for text in [
            "",
            "gcc: error: unrecognized command-line option '-Wnew'",
            "Command-line error: invalid number: c_sqrt=sm_77",
            "ptxas fatal   : Unknown option '-blob'",
            "cicc: error while loading shared libraries: libx.so: cannot open shared object file",
            "a.cu(3): warning #177-D: variable \"error\" was declared",
            "In file included from a.cu:1:\ncc1plus: out of memory",
        ] {
            assert!(!names_a_place(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn every_tried_release_has_recorded_dry_runs() {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plan/tests/transcripts");
        for (major, minor) in [TRIED.start(), TRIED.end()] {
            let folder = recorded.join(format!("{major}.{minor}"));
            assert!(folder.is_dir(), "{}", folder.display());
        }
        for entry in fs::read_dir(recorded).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_string_lossy();
            let parts = name.split_once('.').map(|(a, b)| (a.parse(), b.parse()));
            if let Some((Ok(major), Ok(minor))) = parts {
                assert!(TRIED.contains(&(major, minor)), "{name}");
            }
        }
    }
}
