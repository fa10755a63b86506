//! Remembers which variables a program asked for when it ran on this machine.
//!
//! The watch library does not run on other machines. So a step may run there only if it is known which variables its tool asks
//! for: from the table ([`conditions::seen_in`]), which was compared with the releases that it names, or from a run here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use warpcc_cache::{Hashing, Key, KeySink};
use warpcc_plan::{Arg, Step, Tool};

use crate::conditions::{self, Release};
use crate::context::RunContext;
use crate::located::Located;
use crate::traced_inputs::TracedInputs;

/// The folder in the cache for these notes.
const NOTES: &str = "variables-asked-for-v1";

/// Variables that gcc and clang are asked about here before a host compile is sent: which headers there are, which programs they
/// start. A compile links nothing, so where libraries are does not matter to it.
const ANSWERED_HERE: [&str; 8] = [
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "OBJC_INCLUDE_PATH",
    "OBJCPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "LIBRARY_PATH",
];

/// Notes what a step that ran here asked for, if a similar step may run elsewhere.
pub fn learn(run: &RunContext<'_>, step: &Step, program: &Located, seen: &TracedInputs) {
    // A program that may look at all variables has no such list.
    let is_known = seen.untracked.is_none() && !seen.asked.whole;
    if run.options.executor.is_none() || !is_known || in_table(run, step) {
        return;
    }
    let before = recall(run, step, program);
    let asked = &seen.asked.variables;
    if before.as_ref().is_some_and(|known| asked.is_subset(known)) {
        return;
    }
    let mut all = before.unwrap_or_default();
    all.extend(asked.iter().cloned());
    remember(run, step, program, &all);
}

/// The variables that the step's tool asks for, with those of the table; `None` where they are not known.
pub fn variables(
    run: &RunContext<'_>,
    step: &Step,
    program: &Located,
) -> Option<BTreeSet<OsString>> {
    let known = recall(run, step, program);
    if known.is_none() && in_table(run, step) {
        // A plan that only links does not name the compiler's release.
        remember(run, step, program, &BTreeSet::new());
    }
    let mut all = known.or_else(|| in_table(run, step).then(BTreeSet::new))?;
    let table = conditions::seen_in(step.tool).iter();
    all.extend(table.map(OsString::from));
    Some(all)
}

fn remember(run: &RunContext<'_>, step: &Step, program: &Located, names: &BTreeSet<OsString>) {
    let names: Vec<_> = names.iter().map(|name| name.as_bytes()).collect();
    if let (Some(store), Some(key)) = (run.options.store, key(run, step, program)) {
        // If the note cannot be written, the next step runs here and writes it.
        drop(store.put_note(NOTES, &key, &names.join(&0)));
    }
}

fn recall(run: &RunContext<'_>, step: &Step, program: &Located) -> Option<BTreeSet<OsString>> {
    let note = run.options.store?.note(NOTES, &key(run, step, program)?)?;
    let names = note
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Some(
        names
            .map(|name| OsString::from_vec(name.to_vec()))
            .collect(),
    )
}

/// A tool, by the hash of its program and by its use.
fn key(run: &RunContext<'_>, step: &Step, program: &Located) -> Option<Key> {
    let mut sink = Hashing::new("variables asked for");
    sink.part("tool", format!("{:?}", step.tool).as_bytes());
    sink.part("content", &run.tool_content(&program.path)?);
    Some(sink.finish())
}

/// Whether the table was compared with the tool's release.
fn in_table(run: &RunContext<'_>, step: &Step) -> bool {
    let arguments = run.graph.steps.iter().flat_map(|step| &step.args);
    let release = Release::from_arguments(arguments.filter_map(Arg::as_text));
    release.is_in_table(step.tool)
}

/// Whether the step would lack one of the variables on another machine: it is set here, it is not in `sent`, and it may
/// change the result.
pub fn misses_one(
    run: &RunContext<'_>,
    step: &Step,
    asked: &BTreeSet<OsString>,
    sent: &[(String, String)],
) -> bool {
    let is_host = matches!(step.tool, Tool::HostCompile | Tool::HostAssembly);
    asked.iter().any(|name| {
        // If the directory counts, it is in the key.
        let is_there = name == "PWD" || sent.iter().any(|(sent, _)| name == sent.as_str());
        let is_answered = is_host && ANSWERED_HERE.iter().any(|answered| name == answered);
        !is_there
            && !is_answered
            && !conditions::is_harmless(name)
            && run.options.has_variable(name)
    })
}
