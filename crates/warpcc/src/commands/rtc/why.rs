//! `warpcc rtc why`: whether a kernel is stored, and how it differs from those that were compiled lately.

use std::io;

use serde::Serialize;
use warpcc_report::monitor::harmless;
use warpcc_rtc::{CompileRequest, KernelCache, PartChange, Why};

use crate::commands::output;

/// For whom the answer is.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Programs.
    Json,
    /// People.
    Text,
}

/// A part that differs.
#[derive(Debug, Serialize)]
struct Change<'w> {
    part: &'w str,
    old: Option<&'w str>,
    new: Option<&'w str>,
    line: Option<usize>,
}

/// The answer, for programs.
#[derive(Debug, Serialize)]
struct WhyAnswer<'w> {
    /// `stored`, `not_stored`, `never_seen`, `removed` or `differs`.
    status: &'static str,
    /// The same in the old words, for one release: `kept` for `stored`, `not_kept` for `not_stored`.
    result: &'static str,
    /// Why it is never stored.
    reason: Option<&'w str>,
    changes: Vec<Change<'w>>,
}

/// Writes whether `request` is stored, and how it differs from others if not. Returns whether it is stored.
///
/// # Errors
/// The request is wrong, or the output cannot be written.
pub fn write(cache: &KernelCache, request: &CompileRequest, form: Form) -> anyhow::Result<bool> {
    let why = cache.why(request)?;
    output::print(|out| match form {
        Form::Json => {
            serde_json::to_writer_pretty(&mut *out, &answer(&why))?;
            writeln!(out)
        }
        Form::Text => write_text(out, &request.name, &why),
    })?;
    Ok(why == Why::Stored)
}

fn answer(why: &Why) -> WhyAnswer<'_> {
    let (reason, changes) = match why {
        Why::NotStored(reason) => (Some(reason.as_str()), Vec::new()),
        Why::Differs(all) => (None, all.iter().map(as_change).collect()),
        Why::Stored | Why::NeverSeen | Why::Removed => (None, Vec::new()),
    };
    let status = why.status();
    let result = match why {
        Why::Stored => "kept",
        Why::NotStored(_) => "not_kept",
        _ => status,
    };
    WhyAnswer {
        status,
        result,
        reason,
        changes,
    }
}

fn as_change(change: &PartChange) -> Change<'_> {
    Change {
        part: &change.part,
        old: change.old.as_deref(),
        new: change.new.as_deref(),
        line: change.line,
    }
}

fn write_text(out: &mut dyn io::Write, name: &str, why: &Why) -> io::Result<()> {
    let name = harmless(name);
    match why {
        Why::Stored => writeln!(out, "{name} is in the cache."),
        Why::NotStored(reason) => writeln!(out, "{name} is never stored: {}", harmless(reason)),
        Why::NeverSeen => writeln!(
            out,
            "No kernel named {name} was compiled recently by a process that uses this cache folder."
        ),
        Why::Removed => writeln!(
            out,
            "{name} was compiled as it is now. The result was not stored, or was removed later, for example because the folder was full."
        ),
        Why::Differs(changes) => {
            writeln!(
                out,
                "{name} is not in the cache. It differs from the most similar one in"
            )?;
            changes
                .iter()
                .try_for_each(|change| write_change(out, change))
        }
    }
}

fn write_change(out: &mut dyn io::Write, change: &PartChange) -> io::Result<()> {
    let part = harmless(&change.part);
    match (&change.old, &change.new, change.line) {
        (_, _, Some(line)) => writeln!(out, "  {part}: first differs in line {line}"),
        (Some(old), Some(new), None) if old == new => writeln!(out, "  {part}: different content"),
        (Some(old), Some(new), None) => {
            writeln!(
                out,
                "  {part}: {} now, {} before",
                harmless(new),
                harmless(old)
            )
        }
        (None, Some(new), None) => writeln!(out, "  {part}: {} is new", harmless(new)),
        (Some(old), None, None) => writeln!(out, "  {part}: {} is gone", harmless(old)),
        (None, None, None) => Ok(()),
    }
}
