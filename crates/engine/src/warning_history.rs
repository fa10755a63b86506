//! Whether a host compiler printed messages the last time it had the same options. It will mostly do so again (a header
//! that all files include), and messages with source lines need a run on this machine.
//!
//! A wrong guess costs time only: the step then runs here as well.

use warpcc_cache::{Hashing, Key, KeySink};
use warpcc_plan::{Arg, Part, Step, Tool};

use crate::context::RunContext;

/// The folder in the cache for these notes.
const NOTES: &str = "host-compilers-that-talk-v1";

/// Whether the compiler is likely to warn.
pub fn is_likely_to_warn(run: &RunContext<'_>, step: &Step) -> bool {
    let noted = || run.options.store?.note(NOTES, &options_key(step));
    is_host(step) && noted().is_some_and(|said| said == [1])
}

/// Notes whether the compiler printed messages, if steps like this one may run elsewhere.
pub fn learn_messages(run: &RunContext<'_>, step: &Step, has_messages: bool) {
    if !is_host(step)
        || run.options.executor.is_none()
        || has_messages == is_likely_to_warn(run, step)
    {
        return;
    }
    if let Some(store) = run.options.store {
        // If the note cannot be written, the next step runs here and writes it.
        drop(store.put_note(NOTES, &options_key(step), &[u8::from(has_messages)]));
    }
}

fn is_host(step: &Step) -> bool {
    matches!(step.tool, Tool::HostCompile | Tool::HostAssembly)
}

/// The arguments that are the same for the files of a project.
fn options_key(step: &Step) -> Key {
    let mut sink = Hashing::new("host words");
    let is_option = |arg: &&Arg| arg.0.iter().all(|part| matches!(part, Part::Text(_)));
    for arg in step.args.iter().filter(is_option) {
        sink.part("word", arg.as_text().unwrap_or_default().as_bytes());
    }
    sink.finish()
}
