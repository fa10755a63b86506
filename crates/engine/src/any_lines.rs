//! Stores a step's result also for texts that differ only in their line numbers.
//!
//! Such a result has a second key, without the line numbers of the preprocessed text (`tokens.rs`), and more conditions
//! (`any_lines_conditions.rs`). Whether it gets
//! this key is decided at the end of a run: no step may have printed a message, and no result may contain debug
//! information, because both contain line numbers. If a host compile reads a file that was made from a text with other
//! lines, it must not print a message either: the message would name wrong lines. If it does, the plan runs again, with
//! line numbers in all keys.

use std::io;

use memchr::memmem;
use warpcc_cache::{Level, Lookup, Outcome, guards};
use warpcc_plan::{FileId, Step, Tool};

use crate::any_lines_conditions::AnyLinesConditions;
use crate::conditions::Conditions;
use crate::context::RunContext;
use crate::event::{Finished, StepOutcome};
use crate::pieces;

/// Why a plan runs again with line numbers in all keys.
pub const OTHER_LINES: &str = "a message about a text with other lines";

/// Marks of a result that shows line numbers: debug information, and calls of sanitizers and profilers.
const SHOWS_LINES: [&[u8]; 7] = [
    b".debug_line",
    b".loc\t",
    b".loc ",
    b"__asan_",
    b"__ubsan_",
    b"__tsan_",
    b"__gcov_",
];

/// Whether the step's result may have been made from a text with other lines.
pub fn may_serve(run: &RunContext<'_>, step: &Step) -> bool {
    !run.lines_count
        && matches!(step.tool, Tool::Cicc | Tool::CudaFe)
        && step
            .reads
            .iter()
            .any(|&id| run.artifacts.is_preprocessed(id))
}

/// Whether the step is one of the host compiler's, which reads what the front ends wrote.
fn is_host(step: &Step) -> bool {
    matches!(
        step.tool,
        Tool::HostCompile | Tool::HostAssembly | Tool::Assemble
    )
}

fn says_nothing(finished: &Finished) -> bool {
    finished.stdout.is_empty() && finished.stderr.is_empty()
}

/// Checks the result of a step that read files made from a text with other lines.
///
/// # Errors
/// [`OTHER_LINES`].
pub fn check(run: &RunContext<'_>, step: &Step, finished: &Finished) -> io::Result<()> {
    if is_host(step)
        && step
            .reads
            .iter()
            .any(|id| run.artifacts.has_other_lines(*id))
    {
        // Assembly names the line of each part of the source, and the assembler writes it into the object.
        step.writes
            .iter()
            .for_each(|&id| run.artifacts.set_other_lines(id));
    }
    let fails = matches!(finished.outcome, StepOutcome::Failed(_));
    let speaks = (fails || !says_nothing(finished)) && !guards::is_off("lines-in-messages");
    let misleads = |id: &FileId| run.artifacts.has_other_lines(*id) && has_markers(run, *id);
    match speaks && is_host(step) && step.reads.iter().any(misleads) {
        true => Err(io::Error::other(OTHER_LINES)),
        false => Ok(()),
    }
}

/// Stores the results of a run under the keys without line numbers, if no result contains a line number.
pub fn share(run: &RunContext<'_>, tasks: &[Finished]) {
    let options = run.options;
    let (Some(store), true) = (options.store, options.writes_cache) else {
        return;
    };
    let shared = || tasks.iter().filter(|task| task.of_any_lines.is_some());
    if run.lines_count || shared().next().is_none() {
        return;
    }
    let step_of = |task: &Finished| &run.graph.steps[task.step];
    let shows = |task: &Finished| {
        let step = step_of(task);
        is_host(step) && (!says_nothing(task) || step.writes.iter().any(|&id| shows_lines(run, id)))
    };
    let host_shows = tasks.iter().any(shows) && !guards::is_off("lines-in-messages");
    for task in shared() {
        let Some((exact, of_any_lines)) = task.of_any_lines else {
            continue;
        };
        // Lines in bitcode are used only in messages of the step that reads it. So the result of that step decides.
        let reader = tasks.iter().find(|other| {
            let step = step_of(other);
            step.tool == Tool::Nvvm
                && step
                    .reads
                    .iter()
                    .any(|id| step_of(task).writes.contains(id))
        });
        if reader.is_some_and(|reader| !says_nothing(reader)) {
            continue;
        }
        let shown = |id: FileId| match reader.map(step_of) {
            Some(reader) if reader.reads.contains(&id) => {
                reader.writes.first().copied().unwrap_or(id)
            }
            _ => id,
        };
        let needed = || {
            let writes = step_of(task).writes.iter();
            let needed = writes.copied().filter(|&id| run.graph.is_needed(id));
            needed.map(shown)
        };
        let is_ptx = |id: FileId| run.graph.file(id).path.ends_with(".ptx");
        if needed().any(|id| is_ptx(id) && shows_lines(run, id) || !is_text(run, id))
            || host_shows && needed().any(|id| !is_ptx(id) && has_markers(run, id))
        {
            continue;
        }
        let found = store.look_up_if(
            Level::Steps,
            &exact,
            options.work_dir(),
            &|_| Ok(()),
            |_| {},
        );
        let Lookup::Hit(outcome, manifest) = found else {
            continue;
        };
        let conditions = Conditions::decode(&outcome.extra);
        let Some(conditions) =
            conditions.and_then(|found| AnyLinesConditions::of(run, step_of(task), found))
        else {
            continue;
        };
        let outcome = Outcome {
            extra: conditions.encode(),
            ..outcome
        };
        // A result that cannot be stored is a miss for other calls.
        let kept = store.store_mapped(
            Level::Steps,
            &of_any_lines,
            options.path_map,
            &manifest,
            &outcome,
        );
        if let (Ok(_), Some(upstream)) = (kept, options.upstream) {
            upstream.offer(store, Level::Steps, &of_any_lines);
        }
    }
}

/// Whether a result contains line numbers; true if that is not known.
fn shows_lines(run: &RunContext<'_>, id: FileId) -> bool {
    let longest = SHOWS_LINES.iter().map(|word| word.len()).max().unwrap_or(0);
    any_piece(run, id, &|bytes, _| {
        let mut words = SHOWS_LINES.iter();
        match words.any(|word| memmem::find(bytes, word).is_some()) {
            true => None,
            false => Some(bytes.len().saturating_sub(longest)),
        }
    })
}

/// Whether a file for the host compiler contains the line numbers of its source.
fn has_markers(run: &RunContext<'_>, id: FileId) -> bool {
    any_piece(run, id, &|text, is_end| {
        let text = pieces::whole_lines(text, is_end);
        let mut lines = text.split(|byte| *byte == b'\n');
        let is_marker = |line: &[u8]| {
            line.starts_with(b"#line ") || matches!(line, [b'#', b' ', b'0'..=b'9', ..])
        };
        (!lines.any(is_marker)).then_some(text.len())
    })
}

/// Whether the result can be searched. LTO and OptiX code is packed, and lines change it (seen on 13.0 and 13.5).
fn is_text(run: &RunContext<'_>, id: FileId) -> bool {
    let find_other = |piece: &[u8], is_end: bool| match std::str::from_utf8(piece) {
        Ok(_) => Some(piece.len()),
        Err(cut) if cut.error_len().is_none() && !is_end => Some(cut.valid_up_to()),
        Err(_) => None,
    };
    !any_piece(run, id, &find_other)
}

/// Whether `find` matches in the file, which is read in pieces. `find` returns `None` on a match, otherwise the number of
/// bytes that it has finished. A file that cannot be read counts as a match.
fn any_piece(
    run: &RunContext<'_>,
    id: FileId,
    find: &dyn Fn(&[u8], bool) -> Option<usize>,
) -> bool {
    let mut is_found = false;
    let read = run.artifacts.materialise(id).and_then(|()| {
        pieces::read(run.artifacts.path(id), |text, is_end| {
            let done = find(text, is_end);
            is_found = done.is_none();
            done
        })
    });
    read.is_err() || is_found
}
