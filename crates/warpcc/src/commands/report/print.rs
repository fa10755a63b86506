//! Prints a build in a few lines, and the list of the remembered builds.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use warpcc_report::Summary;
use warpcc_report::build_id::origin;
use warpcc_report::history::Remembered;
use warpcc_report::monitor::harmless;
use warpcc_report::summary::{Segment, SegmentKind};

use crate::commands::avoided;
use crate::config::format_bytes;
use crate::seconds::{format_ago, format_seconds};

/// Rows of each kind: what fits on a screen.
const SHOWN: usize = 5;

/// How much of the machine was used; empty if every call was a direct hit.
fn at_once(summary: &Summary) -> String {
    match summary.budget.slots {
        0 => String::new(),
        slots => {
            let mean = summary.load.mean_running;
            format!(", {mean:.1} tasks at once of {slots} slots")
        }
    }
}

/// Writes the build for people: the figures, then where the time went, then where to read on.
pub fn write_text(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", harmless(&summary.build))?;
    if let Some(origin) = origin(&summary.build, summary.driver.as_deref()) {
        write!(out, ": {}", harmless(origin))?;
    }
    writeln!(out, "\n")?;
    let calls = &summary.calls;
    let bypassed = u64::try_from(calls.fallbacks).unwrap_or(u64::MAX);
    if let Some(avoided) = avoided::sentence(summary.saved, summary.cpu(), bypassed) {
        writeln!(out, "{avoided}\n")?;
    }
    row(
        out,
        "wall time",
        &format!(
            "{}, {}{}",
            format_seconds(summary.wall),
            counted(calls.total, "call"),
            failures(calls.failed)
        ),
    )?;
    row(
        out,
        "CPU time",
        &format!("{}{}", format_seconds(summary.cpu()), at_once(summary)),
    )?;
    if summary.load.peak_kib > 0 {
        row(
            out,
            "peak memory",
            &format_bytes(summary.load.peak_kib.saturating_mul(1024)),
        )?;
    }
    let hits = &summary.hits;
    row(
        out,
        "from the cache",
        &format!(
            "{} of {}, {} of {}; {} saved",
            hits.calls.hits,
            counted(hits.calls.of, "call"),
            hits.tasks.hits,
            counted(hits.tasks.of, "step"),
            format_seconds(summary.saved)
        ),
    )?;
    if calls.fallbacks > 0 {
        row(out, "bypassed", &counted(calls.fallbacks, "call"))?;
    }
    write_longest(summary, out)?;
    write_reasons(summary, out)?;
    writeln!(
        out,
        "\nTimeline, headers, architectures, memory: warpcc report --build {} -o build.html",
        shell_word(&harmless(&summary.build))
    )
}

/// Where the time went.
fn write_longest(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut path: Vec<&Segment> = summary.critical.segments.iter().collect();
    path.sort_by_key(|segment| std::cmp::Reverse(length(segment)));
    if !path.is_empty() {
        writeln!(out, "\nThe longest on the critical path")?;
        for segment in path.iter().take(SHOWN) {
            timed(out, length(segment), &named(segment))?;
        }
    }
    let ran = summary.files.iter().filter(|file| !file.cpu.is_zero());
    let files: Vec<_> = ran.take(SHOWN).collect();
    if !files.is_empty() {
        writeln!(out, "\nThe most expensive files (CPU time)")?;
        for file in files {
            timed(out, file.cpu, &harmless(&file.file))?;
        }
    }
    Ok(())
}

/// Why calls were not hits.
fn write_reasons(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let hits = &summary.hits;
    if !hits.misses.is_empty() {
        writeln!(out, "\nMissed because of")?;
        for miss in hits.misses.iter().take(SHOWN) {
            let what = match miss.kind.as_str() {
                "new" => "never seen before".to_owned(),
                kind => format!("{} {}", harmless(kind), harmless(&miss.name)),
            };
            writeln!(out, "{:>10}  {what}", miss.calls)?;
        }
    }
    if !hits.fallbacks.is_empty() {
        writeln!(out, "\nBypassed because of")?;
        for fallback in hits.fallbacks.iter().take(SHOWN) {
            let reason = harmless(&fallback.reason);
            writeln!(out, "{:>10}  {reason}", fallback.calls)?;
        }
    }
    Ok(())
}

/// Writes the list of builds for people.
pub fn write_list(builds: &[Remembered], out: &mut dyn Write) -> io::Result<()> {
    if builds.is_empty() {
        return writeln!(out, "No build is recorded yet.");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    write_list_at(builds, now.unwrap_or_default(), out)
}

pub(super) fn write_list_at(
    builds: &[Remembered],
    now: Duration,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ids: Vec<String> = builds.iter().map(|build| harmless(&build.id)).collect();
    let widest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0);
    for (build, id) in builds.iter().zip(&ids) {
        let since = now.saturating_sub(Duration::from_nanos(build.started_unix_ns));
        let driver = build.driver.as_deref().map(harmless).unwrap_or_default();
        let line = format!(
            "{id:<widest$}  {:>9}  {:>4} hits  {:>8}  {:>9}  {}  {driver}",
            counted(build.calls, "call"),
            build.direct_hits,
            format_seconds(build.wall),
            format_ago(since),
            harmless(&build.folder.display().to_string()),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes the list for programs.
pub fn write_list_json(builds: &[Remembered], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = builds
        .iter()
        .map(|build| {
            json!({
                "id": build.id,
                "driver": build.driver,
                "started_unix_ns": build.started_unix_ns,
                "wall_s": build.wall.as_secs_f64(),
                "directory": build.folder.display().to_string(),
                "calls": build.calls,
                "direct_hits": build.direct_hits,
            })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &json!({ "builds": rows }))?;
    writeln!(out)
}

/// `1 part`, `3 parts`.
pub fn places(number: u32) -> String {
    counted(number as usize, "part")
}

fn row(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {name:<16}{value}")
}

fn timed(out: &mut dyn Write, time: Duration, what: &str) -> io::Result<()> {
    writeln!(out, "{:>10}  {what}", format_seconds(time))
}

fn length(segment: &Segment) -> Duration {
    segment.to.saturating_sub(segment.from)
}

fn named(segment: &Segment) -> String {
    let words = match segment.kind {
        SegmentKind::Task => [&segment.tool, &segment.architecture, &segment.file]
            .into_iter()
            .flatten()
            .map(|word| harmless(word))
            .collect::<Vec<_>>()
            .join(" "),
        SegmentKind::Warpcc => {
            let file = segment.file.as_deref().map(harmless).unwrap_or_default();
            format!("warpcc and nvcc's dry run {file}")
        }
        SegmentKind::Waiting => "waiting".to_owned(),
        SegmentKind::Outside => "between calls".to_owned(),
    };
    words.trim_end().to_owned()
}

fn failures(failed: usize) -> String {
    match failed {
        0 => String::new(),
        some => format!(", {some} failed"),
    }
}

/// An id that a user has chosen may have a space in it.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::output::text_of;

    #[test]
    fn builds_read_well() {
        let made_up = warpcc_report::Build::new(warpcc_report::sample::build(&Default::default()));
        let summary = warpcc_report::Summary::compute(&made_up);
        insta::assert_snapshot!("build", text_of(|out| write_text(&summary, out)));
        let nothing = warpcc_report::Summary::compute(&warpcc_report::Build::default());
        insta::assert_snapshot!("build_none", text_of(|out| write_text(&nothing, out)));
        let remembered = |id: &str, driver: Option<&str>, seconds: u64, calls| Remembered {
            id: id.into(),
            driver: driver.map(Into::into),
            started_unix_ns: seconds * 1_000_000_000,
            wall: Duration::from_millis(73_210),
            folder: "/home/ada/project".into(),
            calls,
            direct_hits: calls / 2,
        };
        let builds = [
            remembered("ninja-0123456789", Some("ninja -j16"), 9_990, 240),
            remembered("mine\n", None, 100, 1),
        ];
        let now = Duration::from_secs(10_000);
        insta::assert_snapshot!(
            "build_list",
            text_of(|out| write_list_at(&builds, now, out))
        );
    }
}
