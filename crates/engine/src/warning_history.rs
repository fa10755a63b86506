//! Whether a host compiler had anything to say the last time it was told the same options: then it will mostly have again
//! (a header that all files include), and what it says with the source's lines it has to say here.
//!
//! Advice alone: a step that was sent for nothing runs here as well.

use warpcc_cache::{Hashing, Key, KeySink};
use warpcc_plan::{Arg, Part, Step, Tool};

use crate::context::RunContext;

/// The folder of the cache with what is known of it.
const NOTES: &str = "host-compilers-that-talk-v1";

/// Whether the compiler is likely to warn.
pub fn is_likely_to_talk(run: &RunContext<'_>, step: &Step) -> bool {
    let noted = || run.options.store?.note(NOTES, &talk_key(step));
    is_host(step) && noted().is_some_and(|said| said == [1])
}

/// Keeps in mind whether the compiler said anything, where a step like it may leave.
pub fn learn_talk(run: &RunContext<'_>, step: &Step, talked: bool) {
    if !is_host(step) || run.options.executor.is_none() || talked == is_likely_to_talk(run, step) {
        return;
    }
    if let Some(store) = run.options.store {
        // Without the note the next one finds out for itself.
        drop(store.put_note(NOTES, &talk_key(step), &[u8::from(talked)]));
    }
}

fn is_host(step: &Step) -> bool {
    matches!(step.tool, Tool::HostCompile | Tool::HostAssembly)
}

/// The words that the files of a project are compiled with.
fn talk_key(step: &Step) -> Key {
    let mut sink = Hashing::new("host words");
    let is_option = |arg: &&Arg| arg.0.iter().all(|part| matches!(part, Part::Text(_)));
    for arg in step.args.iter().filter(is_option) {
        sink.part("word", arg.as_text().unwrap_or_default().as_bytes());
    }
    sink.finish()
}
