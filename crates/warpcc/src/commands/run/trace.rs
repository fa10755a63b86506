//! A timeline in Chrome's trace format, for ui.perfetto.dev and chrome://tracing.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::timeline::{Run, TaskOutcome, TaskRow};

/// The number of the trace's only process. Any number would do.
const PROCESS: u32 = 1;

/// Writes the trace. Commands that ran at the same time are in different lanes, and arrows show dependencies.
pub fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let lanes = run.lanes();
    let mut events = vec![metadata("process_name", 0, &run.title)];
    for lane in 0..lanes.iter().map(|lane| lane + 1).max().unwrap_or(0) {
        events.push(metadata("thread_name", lane, &format!("slot {}", lane + 1)));
    }
    for (row, lane) in run.rows.iter().zip(&lanes) {
        // A command that did not run is not in the timeline.
        if row.outcome != TaskOutcome::Skipped {
            events.push(slice(row, *lane));
        }
    }
    arrows(run, &lanes, &mut events);
    running(run, &mut events);
    let trace = json!({ "displayTimeUnit": "ms", "traceEvents": events });
    serde_json::to_writer(&mut *out, &trace)?;
    writeln!(out)
}

fn micros(time: Duration) -> f64 {
    // Nanoseconds are kept as a fraction, which both viewers read.
    time.as_nanos() as f64 / 1000.0
}

fn metadata(kind: &str, lane: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": kind, "pid": PROCESS, "tid": lane, "args": { "name": name } })
}

fn slice(row: &TaskRow, lane: usize) -> Value {
    let name = row.title();
    let outcome = row.outcome.describe(|| "ran".to_owned());
    json!({
        "ph": "X",
        "name": name,
        "cat": row.tool,
        "pid": PROCESS,
        "tid": lane,
        "ts": micros(row.started),
        "dur": micros(row.elapsed()),
        "args": {
            "number": row.number,
            "label": row.label,
            "outcome": outcome,
            "user_s": row.user.as_secs_f64(),
            "system_s": row.system.as_secs_f64(),
            "peak_kib": row.peak_kib,
            "command": row.command,
        },
    })
}

/// An arrow from the end of each command to the start of those that waited for it.
fn arrows(run: &Run, lanes: &[usize], events: &mut Vec<Value>) {
    for (id, edge) in run.edges().iter().enumerate() {
        let (from, to) = (&run.rows[edge.from], &run.rows[edge.to]);
        let skipped = TaskOutcome::Skipped;
        if from.outcome == skipped || to.outcome == skipped || to.started < from.finished {
            continue;
        }
        let name = if edge.files.is_empty() {
            "order".to_owned()
        } else {
            edge.files.join(", ")
        };
        // Bound to the slice that encloses it, so it must start inside, not at the end.
        let inside = from.started + from.elapsed() / 2;
        events.push(json!({
            "ph": "s", "id": id, "name": name, "cat": "file",
            "pid": PROCESS, "tid": lanes[edge.from], "ts": micros(inside),
        }));
        events.push(json!({
            "ph": "f", "bp": "e", "id": id, "name": name, "cat": "file",
            "pid": PROCESS, "tid": lanes[edge.to], "ts": micros(to.started),
        }));
    }
}

/// How many commands ran at each moment.
fn running(run: &Run, events: &mut Vec<Value>) {
    let mut changes = Vec::new();
    for row in &run.rows {
        if !row.elapsed().is_zero() {
            changes.extend([(row.started, 1_i64), (row.finished, -1)]);
        }
    }
    // Ends sort before starts of the same moment, so the count never overshoots.
    changes.sort_unstable();
    let mut count = 0;
    for (at, change) in changes {
        count += change;
        events.push(json!({
            "ph": "C", "name": "commands running", "pid": PROCESS, "tid": 0,
            "ts": micros(at), "args": { "running": count },
        }));
    }
}
