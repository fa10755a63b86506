//! `warpcc report --device-trace`: finds the traces that a build's calls of nvcc wrote, adds them up, and writes the sums.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use warpcc_cache::regular_file;
use warpcc_plan::Invocation;
use warpcc_report::device_trace::{Cost, DeviceTraces, Sums};
use warpcc_report::monitor::harmless;
use warpcc_report::{Build, InvocationRecord};

use crate::config::variable;
use crate::seconds::format_seconds;

/// Rows of each kind: what fits on a screen.
const SHOWN: usize = 10;

/// Adds up the traces of a build.
///
/// # Errors
/// No call wrote one that is there, or one cannot be read.
pub fn of_build(build: &Build) -> anyhow::Result<DeviceTraces> {
    let mut files: Vec<PathBuf> = build
        .calls
        .iter()
        .filter_map(|call| trace_of(&call.record))
        .collect();
    files.sort();
    files.dedup();
    if files.is_empty() {
        bail!(
            "no call of the build left a trace: compile with -fdevice-time-trace -, such as by \
             NVCC_APPEND_FLAGS='-fdevice-time-trace -', with a toolkit of 13.0 or later"
        );
    }
    let mut sums = Sums::default();
    for file in &files {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        sums.add(&bytes)
            .with_context(|| format!("{} is not a trace written by nvcc", file.display()))?;
    }
    Ok(sums.finish())
}

/// The trace that a call wrote, if it is there.
fn trace_of(call: &InvocationRecord) -> Option<PathBuf> {
    let folder = Path::new(&call.directory);
    let flags = |name: &str| {
        let value = variable(name).unwrap_or_default();
        value.to_string_lossy().into_owned()
    };
    let read = |file: &str| regular_file::read(&folder.join(file)).ok();
    let invocation = Invocation::parse(
        call.args.get(1..)?,
        &flags("NVCC_PREPEND_FLAGS"),
        &flags("NVCC_APPEND_FLAGS"),
        &read,
    );
    let names = invocation.ok()?.time_trace_names().into_iter();
    let files = names.map(|name| folder.join(name)).filter_map(|file| {
        let changed = fs::metadata(&file)
            .and_then(|found| found.modified())
            .ok()?;
        Some((changed, file))
    });
    files.max().map(|(_, file)| file)
}

/// Writes the sums for people.
pub fn write_text(traces: &DeviceTraces, out: &mut dyn Write) -> io::Result<()> {
    let plural = if traces.traces == 1 { "" } else { "s" };
    writeln!(out, "{} trace{plural} of nvcc's", traces.traces)?;
    for (title, costs) in [
        ("Phases", &traces.phases),
        ("Headers, with what they include", &traces.headers),
        ("Templates", &traces.templates),
    ] {
        if costs.is_empty() {
            continue;
        }
        writeln!(out, "\n{title}")?;
        writeln!(out, "{:>10}{:>10}{:>8}", "time", "alone", "times")?;
        for cost in costs.iter().take(SHOWN) {
            write_cost(cost, out)?;
        }
        let others: Duration = costs.iter().skip(SHOWN).map(|cost| cost.own).sum();
        if costs.len() > SHOWN {
            let count = costs.len() - SHOWN;
            writeln!(
                out,
                "{:>20}{:>8}  {count} others",
                format_seconds(others),
                ""
            )?;
        }
    }
    Ok(())
}

fn write_cost(cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>10}{:>10}{:>8}  {}",
        format_seconds(cost.total),
        format_seconds(cost.own),
        cost.count,
        harmless(&cost.name)
    )
}

/// Writes the sums for programs.
pub fn write_json(traces: &DeviceTraces, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, traces)?;
    writeln!(out)
}
