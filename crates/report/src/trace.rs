//! A build in Chrome's trace format, for ui.perfetto.dev and chrome://tracing: slots are
//! threads, calls have a track of their own, tasks at once and memory are counters.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::build::{Build, BuildCall, Span};
use crate::record::{CallOutcome, TaskEnd};

/// The slots.
const SLOTS: u32 = 1;
/// The calls, in as many lanes as ran at once.
const CALLS: u32 = 2;

/// Writes the trace, one event per line, so that a large trace need not be in memory as a whole.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(build: &Build, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut events = Events { out, any: false };
    events.add(&named("process_name", SLOTS, 0, &build.title()))?;
    events.add(&named("process_name", CALLS, 0, "calls"))?;
    for lane in 0..build.lanes {
        events.add(&named(
            "thread_name",
            SLOTS,
            lane,
            &format!("slot {}", lane + 1),
        ))?;
    }
    for span in &build.spans {
        // A cached task had no slot, so it is shown among the calls.
        if let Some(lane) = span.lane {
            events.add(&task(build, span, lane))?;
        }
    }
    let mut lanes: Vec<Duration> = Vec::new();
    for one in &build.calls {
        let free = lanes.iter().position(|free| *free <= one.started);
        let lane = free.unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Duration::ZERO);
        }
        lanes[lane] = one.finished;
        events.add(&call(one, lane))?;
    }
    counters(build, &mut events)?;
    writeln!(out, "\n]}}")
}

struct Events<'a> {
    out: &'a mut dyn Write,
    any: bool,
}

impl Events<'_> {
    fn add(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }
}

fn micros(time: Duration) -> f64 {
    // Nanoseconds are kept as a fraction, which both viewers read.
    time.as_nanos() as f64 / 1000.0
}

fn named(kind: &str, process: u32, thread: u32, name: &str) -> Value {
    json!({ "ph": "M", "name": kind, "pid": process, "tid": thread, "args": { "name": name } })
}

fn task(build: &Build, span: &Span, lane: u32) -> Value {
    let task = build.task(span);
    let name = match &task.architecture {
        Some(architecture) => format!("{} {architecture}", task.tool),
        None => task.tool.clone(),
    };
    let outcome = match task.state {
        TaskEnd::Ran => "ran".to_owned(),
        TaskEnd::Hit => "from the cache".to_owned(),
        TaskEnd::Skipped => "not run".to_owned(),
        TaskEnd::Failed(code) => format!("failed with exit code {code}"),
    };
    json!({
        "ph": "X",
        "name": name,
        "cat": task.tool,
        "pid": SLOTS,
        "tid": lane,
        "ts": micros(span.started),
        "dur": micros(span.elapsed()),
        "args": {
            "file": build.calls[span.call].file,
            "label": task.label,
            "outcome": outcome,
            "waited_s": (span.started - span.queued).as_secs_f64(),
            "waited_for": task.waited_for,
            "user_s": task.user.as_secs_f64(),
            "system_s": task.system.as_secs_f64(),
            "peak_kib": task.peak_kib,
            "evicted": task.evicted,
        },
    })
}

fn call(call: &BuildCall, lane: usize) -> Value {
    let outcome = match &call.record.outcome {
        CallOutcome::DirectHit => "from the cache".to_owned(),
        CallOutcome::Built => "built".to_owned(),
        CallOutcome::Passed => "plain nvcc, nothing to cache".to_owned(),
        CallOutcome::Fallback { reason } => format!("plain nvcc: {reason}"),
        CallOutcome::Failed { code } => format!("failed with exit code {code}"),
    };
    json!({
        "ph": "X",
        "name": call.file,
        "cat": "call",
        "pid": CALLS,
        "tid": lane,
        "ts": micros(call.started),
        "dur": micros(call.finished - call.started),
        "args": { "outcome": outcome, "command": call.record.args.join(" ") },
    })
}

/// How many tasks ran, and the sum of their memory, whenever that changes.
fn counters(build: &Build, events: &mut Events<'_>) -> io::Result<()> {
    let mut changes: BTreeMap<Duration, (i64, i64)> = BTreeMap::new();
    for (span, _, task) in build.tasks() {
        if span.lane.is_some() && !span.elapsed().is_zero() {
            let mib = i64::try_from(task.peak_kib >> 10).unwrap_or(0);
            for (at, sign) in [(span.started, 1), (span.finished, -1)] {
                let change = changes.entry(at).or_default();
                *change = (change.0 + sign, change.1 + sign * mib);
            }
        }
    }
    let (mut running, mut mib) = (0, 0);
    for (at, change) in changes {
        running += change.0;
        mib += change.1;
        for (name, value) in [("tasks running", running), ("memory, MiB", mib)] {
            events.add(&json!({
                "ph": "C", "name": name, "pid": SLOTS, "tid": 0,
                "ts": micros(at), "args": { name: value },
            }))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn trace(build: &Build) -> Value {
        let mut out = Vec::new();
        write(build, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn every_task_that_ran_is_there_once_and_slots_do_not_overlap() {
        let build = Build::new(sample::build(&sample::Shape::default()));
        let json = trace(&build);
        let events = json["traceEvents"].as_array().unwrap();
        let slices = |process: u32| {
            let mine = move |event: &&Value| event["ph"] == "X" && event["pid"] == process;
            events.iter().filter(mine)
        };
        let ran = build.tasks().filter(|(_, _, task)| task.ran()).count();
        assert_eq!(slices(SLOTS).count(), ran);
        assert_eq!(slices(CALLS).count(), build.calls.len());
        let mut ends = vec![0.0; build.lanes as usize];
        for event in slices(SLOTS) {
            let lane = event["tid"].as_u64().unwrap() as usize;
            let start = event["ts"].as_f64().unwrap();
            assert!(start >= ends[lane] - 0.01, "{event}");
            ends[lane] = start + event["dur"].as_f64().unwrap();
        }
        // Every count that went up went down again.
        let last = events
            .iter()
            .rev()
            .find(|event| event["ph"] == "C")
            .unwrap();
        assert_eq!(last["args"]["memory, MiB"], 0);
    }

    #[test]
    fn an_empty_build_is_a_trace_too() {
        let json = trace(&Build::new(Vec::new()));
        assert_eq!(json["traceEvents"].as_array().unwrap().len(), 2);
    }
}
