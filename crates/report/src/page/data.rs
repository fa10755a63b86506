//! The page's data: columns instead of rows, and every text once, so that 30,000 tasks stay a few megabytes. Its form
//! belongs to the scripts in `page/` and may change with them; for programs there is [`crate::json`].

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::build::{Build, BuildCall, PLAIN};
use crate::device_trace::{Cost, DeviceTraces};
use crate::record::{CallOutcome, TaskEnd, Wait};
use crate::summary::{SegmentCause, SegmentKind, Summary, miss_reason, number_of};

/// The bytes of a command line that are shown.
const COMMAND_SHOWN: usize = 1200;

#[derive(Default)]
struct Texts {
    list: Vec<String>,
    place: HashMap<String, usize>,
}

impl Texts {
    fn add(&mut self, text: &str) -> usize {
        if let Some(at) = self.place.get(text) {
            return *at;
        }
        self.list.push(text.to_owned());
        self.place.insert(text.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

#[derive(Default, Serialize)]
struct Tasks {
    start: Vec<u64>,
    end: Vec<u64>,
    queued: Vec<u64>,
    lane: Vec<i64>,
    tool: Vec<usize>,
    arch: Vec<i64>,
    label: Vec<usize>,
    call: Vec<usize>,
    state: Vec<u8>,
    cpu: Vec<u64>,
    peak: Vec<u64>,
    saved: Vec<u64>,
    wait: Vec<u8>,
    #[serde(rename = "notStored")]
    not_stored: Vec<i64>,
}

#[derive(Default, Serialize)]
struct CallColumns {
    start: Vec<u64>,
    end: Vec<u64>,
    file: Vec<usize>,
    folder: Vec<usize>,
    outcome: Vec<u8>,
    detail: Vec<i64>,
    reason: Vec<i64>,
    saved: Vec<u64>,
    directory: Vec<usize>,
    command: Vec<String>,
    #[serde(rename = "headerBytes")]
    header_bytes: Vec<u64>,
    headers: Vec<Vec<usize>>,
}

#[derive(Default, Serialize)]
struct HeaderColumns {
    path: Vec<String>,
    bytes: Vec<u64>,
}

/// Rows of each kind of nvcc's own traces: a page of Thrust's templates would have tens of thousands.
const DEVICE_ROWS: usize = 500;

/// Everything the page shows.
pub(super) fn collect(build: &Build, summary: &Summary) -> Value {
    let mut texts = Texts::default();
    let (tools, archs, labels, tasks) = tasks(build, &mut texts);
    let numbers: Vec<&str> = archs.iter().map(|arch| number_of(arch)).collect();
    let (mut files, mut folders) = (Texts::default(), Texts::default());
    let (mut headers, mut header_place) = (HeaderColumns::default(), HashMap::new());
    let (mut reasons, mut reason_place) = (Vec::new(), HashMap::new());
    let mut calls = CallColumns::default();
    for call in &build.calls {
        let record = &call.record;
        calls.start.push(micros(call.started));
        calls.end.push(micros(call.finished));
        calls.file.push(files.add(&call.file));
        calls.folder.push(folders.add(&call.folder));
        let (outcome, detail) = outcome(&record.outcome);
        calls.outcome.push(outcome);
        calls
            .detail
            .push(detail.map_or(-1, |text| place(texts.add(text))));
        calls.reason.push(match miss_reason(call) {
            Some(key) => *reason_place.entry(key).or_insert_with(|| {
                reasons.push(reason(call, key));
                place(reasons.len() - 1)
            }),
            None => -1,
        });
        calls.saved.push(micros(record.saved));
        calls.directory.push(texts.add(&record.directory));
        calls.command.push(command(&record.args));
        calls.header_bytes.push(record.headers.bytes);
        let of_call = record.headers.largest.iter().map(|header| {
            let at = *header_place.entry(&header.path).or_insert_with(|| {
                headers.path.push(header.path.clone());
                headers.bytes.push(0);
                headers.path.len() - 1
            });
            headers.bytes[at] = headers.bytes[at].max(header.bytes);
            at
        });
        calls.headers.push(of_call.collect());
    }
    let direct = |at: &usize| build.calls[*at].record.outcome == CallOutcome::DirectHit;
    let direct_hits: Vec<usize> = (0..build.calls.len()).filter(direct).collect();
    json!({
        "meta": meta(build),
        "figures": figures(summary),
        "another": summary.another.map(|another| json!({
            "cpuUs": micros(another.cpu), "wallUs": micros(another.wall), "files": another.files,
        })),
        "toolOrder": tool_order(&tools.list),
        "tools": tools.list,
        "archs": archs,
        "numbers": numbers,
        "labels": labels.list,
        "files": files.list,
        "folders": folders.list,
        "texts": texts.list,
        "reasons": reasons,
        "headers": headers,
        "critical": critical(build, summary),
        "directHits": direct_hits,
        "deviceTraces": summary.device_traces.as_ref().map(device_traces),
        "calls": calls,
        "tasks": tasks,
    })
}

/// Name, events, time, time alone: the most expensive ones.
fn device_traces(traces: &DeviceTraces) -> Value {
    let rows = |costs: &[Cost]| -> Vec<Value> {
        let costs = costs.iter().take(DEVICE_ROWS);
        let row =
            |cost: &Cost| json!([cost.name, cost.count, micros(cost.total), micros(cost.own)]);
        costs.map(row).collect()
    };
    json!({
        "traces": traces.traces,
        "phases": rows(&traces.phases),
        "headers": rows(&traces.headers),
        "templates": rows(&traces.templates),
    })
}

fn tasks(build: &Build, texts: &mut Texts) -> (Texts, Vec<String>, Texts, Tasks) {
    let (mut tools, mut archs, mut labels) = (Texts::default(), Texts::default(), Texts::default());
    let mut tasks = Tasks::default();
    for (span, _, task) in build.tasks() {
        tasks.start.push(micros(span.started));
        tasks.end.push(micros(span.finished));
        tasks.queued.push(micros(span.queued));
        tasks.lane.push(span.lane.map_or(-1, i64::from));
        tasks.tool.push(tools.add(&task.tool));
        let arch = task.architecture.as_deref();
        tasks
            .arch
            .push(arch.map_or(-1, |arch| place(archs.add(arch))));
        tasks.label.push(labels.add(&task.label));
        tasks.call.push(span.call);
        tasks.state.push(match task.state {
            TaskEnd::Ran | TaskEnd::Skipped => 0,
            TaskEnd::Hit => 1,
            TaskEnd::Failed(_) => 2,
        });
        // A cached task cost nothing in this build.
        let cpu = if task.ran() {
            task.cpu()
        } else {
            Duration::ZERO
        };
        tasks.cpu.push(micros(cpu));
        tasks.peak.push(if task.ran() { task.peak_kib } else { 0 });
        tasks.saved.push(micros(task.saved));
        tasks.wait.push(match task.waited_for {
            None => 0,
            Some(Wait::Cpu) => 1,
            Some(Wait::Memory) => 2,
            Some(Wait::Token) => 3,
        });
        let not_stored = task.not_stored.as_deref();
        tasks
            .not_stored
            .push(not_stored.map_or(-1, |text| place(texts.add(text))));
    }
    (tools, archs.list, labels, tasks)
}

fn meta(build: &Build) -> Value {
    json!({
        "title": build.title(),
        "build": build.id,
        "host": build.host,
        "root": build.root,
        "startedMs": build.started_unix_ns / 1_000_000,
        "wallUs": micros(build.wall),
        "slots": build.budget.slots,
        "memoryKib": build.budget.memory_kib,
        "lanes": build.lanes,
        "clockJumps": build.clock_jumps,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn figures(summary: &Summary) -> Value {
    let wait = |reason: Wait| {
        let waited = summary
            .load
            .waited
            .get(&reason)
            .copied()
            .unwrap_or_default();
        json!({ "tasks": waited.tasks, "us": micros(waited.total) })
    };
    json!({
        "cpuUs": micros(summary.cpu()),
        "systemUs": micros(summary.system),
        "savedUs": micros(summary.saved),
        "avoidedShare": summary.avoided_share,
        "bypassed": summary.calls.fallbacks,
        "meanRunning": summary.load.mean_running,
        "fullUs": micros(summary.load.full),
        "tailUs": micros(summary.load.tail),
        "peakKib": summary.load.peak_kib,
        "callHits": summary.hits.calls.hits,
        "callLooked": summary.hits.calls.of,
        "taskHits": summary.hits.tasks.hits,
        "taskLooked": summary.hits.tasks.of,
        "failed": summary.calls.failed,
        "evicted": summary.load.evicted,
        "waits": { "cpu": wait(Wait::Cpu), "memory": wait(Wait::Memory), "tokens": wait(Wait::Token) },
    })
}

/// Kind, from, to, task, why, call; -1 for none.
fn critical(build: &Build, summary: &Summary) -> Vec<[i64; 6]> {
    let pieces = summary.critical.segments.iter().map(|segment| {
        let kind = match segment.kind {
            SegmentKind::Task => 0,
            SegmentKind::Warpcc => 1,
            SegmentKind::Waiting => 2,
            SegmentKind::Outside => 3,
        };
        let why = match segment.why {
            SegmentCause::First => 0,
            SegmentCause::Needed => 1,
            SegmentCause::Cpu => 2,
            SegmentCause::Memory => 3,
            SegmentCause::Token => 4,
            SegmentCause::Started => 5,
        };
        let call = segment
            .call
            .or(segment.span.map(|span| build.spans[span].call));
        let time = |time| i64::try_from(micros(time)).unwrap_or(i64::MAX);
        [
            kind,
            time(segment.from),
            time(segment.to),
            segment.span.map_or(-1, place),
            why,
            call.map_or(-1, place),
        ]
    });
    pieces.collect()
}

/// The tools in nvcc's order, then the others.
fn tool_order(tools: &[String]) -> Vec<usize> {
    const ORDER: [&str; 7] = [
        "host",
        "cudafe++",
        "cicc",
        "ptxas",
        "fatbinary",
        "nvlink",
        PLAIN,
    ];
    let rank = |tool: &String| ORDER.iter().position(|known| known == tool);
    tools
        .iter()
        .enumerate()
        .map(|(at, tool)| rank(tool).unwrap_or(ORDER.len() + at))
        .collect()
}

fn outcome(outcome: &CallOutcome) -> (u8, Option<&str>) {
    match outcome {
        CallOutcome::DirectHit => (0, None),
        CallOutcome::Built => (1, None),
        CallOutcome::Fallback { reason } => (2, Some(reason)),
        CallOutcome::Passed => (3, None),
        CallOutcome::Failed { .. } => (4, None),
    }
}

fn reason(call: &BuildCall, (kind, name): (&str, &str)) -> Value {
    let change = call.record.missed.first();
    json!({
        "kind": kind,
        "name": name,
        "old": change.and_then(|change| change.old.as_deref()),
        "new": change.and_then(|change| change.new.as_deref()),
        "example": call.file,
    })
}

fn command(args: &[String]) -> String {
    let mut command = String::new();
    for word in args {
        if command.len() + word.len() > COMMAND_SHOWN {
            command.push_str(" …");
            break;
        }
        if !command.is_empty() {
            command.push(' ');
        }
        command.push_str(word);
    }
    command
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn place(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(-1)
}
