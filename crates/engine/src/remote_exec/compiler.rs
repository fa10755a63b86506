//! Functions that gcc and clang share as host compilers on another machine.

use std::path::Path;

use warpcc_plan::{Arg, FileId, Part, Step};

use crate::context::RunContext;
use crate::located::Located;
use crate::process::Ended;
use crate::slot_wait::SlotWait;
use crate::traced_inputs::TracedInputs;
use crate::watched_run;

/// Text with another meaning on another machine: the date or time of a compilation, and a precompiled header.
pub const MACHINE_SPECIFIC: [&[u8]; 4] = [
    b"__DATE__",
    b"__TIME__",
    b"__TIMESTAMP__",
    b"#pragma GCC pch_preprocess",
];

/// gcc's options `-f…` that read or write other files, or write their own value into the code.
pub const STAYS_LOCAL: [&str; 21] = [
    "auto-profile",
    "branch-probabilities",
    "callgraph-info",
    "compare-debug",
    "coverage",
    "debug",
    "dump",
    "lto",
    "module",
    "opt-info",
    "pch",
    "plugin",
    "profile",
    "record-gcc-switches",
    "save-optimization-record",
    "split-dwarf",
    "stack-usage",
    "test-coverage",
    "verbose-asm",
    "whopr",
    "working-directory",
];

/// Whether a host compiler is clang, under whatever name it is called.
pub fn is_clang(program: &Path) -> bool {
    let file = program.canonicalize();
    let name = file
        .as_ref()
        .ok()
        .and_then(|file| file.file_name()?.to_str());
    name.is_some_and(|name| name.starts_with("clang"))
}

/// Runs the host compiler to ask it something.
pub fn ask(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
) -> Option<(Ended, TracedInputs)> {
    let (ended, seen) =
        watched_run::run_watched(run, index, step, program, None, &mut SlotWait::default()).ok()?;
    (ended.code == 0 && ended.signal.is_none()).then_some((ended, seen))
}

/// The file that is compiled.
pub fn source_of(step: &Step) -> Option<FileId> {
    let ids = step.args.iter().filter_map(|arg| match arg.0[..] {
        [Part::File(id)] => Some(id),
        _ => None,
    });
    let mut sources = ids.filter(|id| !step.writes.contains(id));
    sources.next()
}

/// A copy of the step with changed arguments, inputs and outputs.
pub fn changed(
    step: &Step,
    to: &Path,
    change: impl Fn(&str) -> Option<&'static str>,
) -> Option<Step> {
    let output = *step.writes.first()?;
    let mut changed = step.clone();
    for arg in &mut changed.args {
        if let Some(text) = arg.as_text().and_then(&change) {
            *arg = Arg::text(text);
        } else if *arg == Arg::file(output) {
            *arg = Arg::text(to.to_str()?);
        }
    }
    Some(changed)
}

/// The words of a line. A word that contains more than letters is between double quotes, with backslashes before the
/// characters that a shell would interpret.
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim().chars().peekable();
    while rest.peek().is_some() {
        let mut word = String::new();
        let mut quoted = false;
        loop {
            match rest.next() {
                Some('"') => quoted = !quoted,
                Some('\\') => word.push(rest.next()?),
                Some(' ') if !quoted => break,
                Some(letter) => word.push(letter),
                None if quoted => return None,
                None => break,
            }
        }
        words.push(word);
    }
    Some(words)
}
