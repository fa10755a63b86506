//! Adds up the traces that nvcc writes with `-fdevice-time-trace`: what phases, headers and templates cost in all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The event of a header that is read, as 13.0 and 13.5 name it.
const HEADER: &str = "Processing Header File";
/// How the events of a template that is instantiated begin.
const TEMPLATE: &str = "Instantiating Template";

/// The sums of several traces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceTraces {
    /// How many traces were read.
    pub traces: usize,
    /// Each kind of event, the most expensive first.
    pub phases: Vec<Cost>,
    /// Each header, the most expensive first, with what it includes.
    pub headers: Vec<Cost>,
    /// Each function and class of a template, the most expensive first.
    pub templates: Vec<Cost>,
}

/// The events of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The kind of event, the header or the template.
    pub name: String,
    /// The number of events.
    pub count: u64,
    /// Their time together. Events within others are in both.
    #[serde(rename = "total_s", serialize_with = "crate::seconds::serialize")]
    pub total: Duration,
    /// The same without events of the same kind within them: a header without the headers that it includes.
    #[serde(rename = "own_s", serialize_with = "crate::seconds::serialize")]
    pub own: Duration,
}

#[derive(Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<TraceEvent>,
}

/// An event. Those that only name something have no duration.
#[derive(Deserialize)]
struct TraceEvent {
    name: Option<String>,
    dur: Option<u64>,
    ts: Option<u64>,
    pid: Option<u64>,
    tid: Option<u64>,
    args: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    detail: Option<String>,
}

/// Adds traces up.
#[derive(Debug, Default)]
pub struct Sums {
    traces: usize,
    phases: BTreeMap<String, Cost>,
    headers: BTreeMap<String, Cost>,
    templates: BTreeMap<String, Cost>,
}

impl Sums {
    /// Adds one trace.
    ///
    /// # Errors
    /// The text is not a trace.
    pub fn add(&mut self, trace: &[u8]) -> Result<(), serde_json::Error> {
        let mut events = serde_json::from_slice::<Trace>(trace)?.events;
        // Events within an event come after it.
        let order = |e: &TraceEvent| (e.pid, e.tid, e.ts, std::cmp::Reverse(e.dur));
        events.sort_by_key(order);
        self.traces += 1;
        let mut open: Vec<(u64, &str, u64)> = Vec::new();
        for event in &events {
            let (Some(name), Some(duration)) = (event.name.as_deref(), event.dur) else {
                continue;
            };
            let thread = event.pid.unwrap_or(0) << 32 | event.tid.unwrap_or(0);
            let from = event.ts.unwrap_or(0);
            open.retain(|(of, _, end)| *of == thread && from < *end);
            let outer = open.iter().rev().find(|(_, kind, _)| *kind == name);
            let is_inner = outer.is_some();
            open.push((thread, name, from.saturating_add(duration)));
            let detail = event.args.as_ref().and_then(|args| args.detail.as_deref());
            let by_detail = match (name, detail) {
                (HEADER, Some(header)) => Some((&mut self.headers, header)),
                (name, Some(of)) if name.starts_with(TEMPLATE) => Some((&mut self.templates, of)),
                _ => None,
            };
            if let Some((costs, detail)) = by_detail {
                add(costs, detail, duration);
            }
            let phase = add(&mut self.phases, name, duration);
            if is_inner {
                phase.own = phase.own.saturating_sub(Duration::from_micros(duration));
            }
        }
        self.subtract_inner(&events);
        Ok(())
    }

    /// Takes from each header and template what lies directly within it.
    fn subtract_inner(&mut self, events: &[TraceEvent]) {
        for (kind, costs) in [(HEADER, &mut self.headers), (TEMPLATE, &mut self.templates)] {
            let mut open: Vec<(&TraceEvent, u64)> = Vec::new();
            for event in events {
                let is_kind = event.name.as_deref().is_some_and(|n| n.starts_with(kind));
                let (true, Some(duration)) = (is_kind, event.dur) else {
                    continue;
                };
                let from = event.ts.unwrap_or(0);
                let same = |other: &TraceEvent| (other.pid, other.tid) == (event.pid, event.tid);
                while open
                    .last()
                    .is_some_and(|(outer, end)| !same(outer) || from >= *end)
                {
                    open.pop();
                }
                let outer = open.last().and_then(|(outer, _)| outer.args.as_ref());
                let outer = outer.and_then(|args| args.detail.as_deref());
                if let Some(cost) = outer.and_then(|outer| costs.get_mut(outer)) {
                    cost.own = cost.own.saturating_sub(Duration::from_micros(duration));
                }
                open.push((event, from.saturating_add(duration)));
            }
        }
    }

    /// The sums, the most expensive first.
    pub fn finish(self) -> DeviceTraces {
        let sorted = |costs: BTreeMap<String, Cost>| {
            let mut costs: Vec<Cost> = costs.into_values().collect();
            costs.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
            costs
        };
        DeviceTraces {
            traces: self.traces,
            phases: sorted(self.phases),
            headers: sorted(self.headers),
            templates: sorted(self.templates),
        }
    }
}

fn add<'a>(costs: &'a mut BTreeMap<String, Cost>, name: &str, micros: u64) -> &'a mut Cost {
    let cost = costs.entry(name.to_owned()).or_default();
    let time = Duration::from_micros(micros);
    cost.name = name.to_owned();
    cost.count += 1;
    cost.total = cost.total.saturating_add(time);
    cost.own = cost.own.saturating_add(time);
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_added_up_with_and_without_what_they_include() {
        let event = |name: &str, detail: &str, pid: u32, ts: u32, dur: u32| {
            format!(
                r#"{{"name":"{name}","ph":"X","pid":{pid},"tid":0,"ts":{ts},"dur":{dur},"args":{{"detail":"{detail}"}}}}"#
            )
        };
        let trace = [
            event(HEADER, "inner.h", 1, 10, 30),
            event(HEADER, "outer.h", 1, 0, 100),
            event(HEADER, "outer.h", 2, 20, 50),
            event("Instantiating Template Function", "f<int>", 1, 200, 7),
            r#"{"name":"process_name","ph":"M","pid":1,"args":{"name":"cicc"}}"#.to_owned(),
            "{}".to_owned(),
        ];
        let trace = format!(r#"{{"traceEvents":[{}]}}"#, trace.join(","));
        let mut sums = Sums::default();
        for _ in 0..2 {
            sums.add(trace.as_bytes()).expect("a trace");
        }
        assert!(sums.add(b"[]").is_err());
        let sums = sums.finish();
        assert_eq!(sums.traces, 2);
        let figures = |costs: &[Cost]| -> Vec<(String, u64, u128, u128)> {
            let of = |c: &Cost| {
                (
                    c.name.clone(),
                    c.count,
                    c.total.as_micros(),
                    c.own.as_micros(),
                )
            };
            costs.iter().map(of).collect()
        };
        assert_eq!(
            figures(&sums.headers),
            [
                ("outer.h".into(), 4, 300, 240),
                ("inner.h".into(), 2, 60, 60)
            ]
        );
        assert_eq!(figures(&sums.phases)[0], (HEADER.into(), 6, 360, 300));
        assert_eq!(figures(&sums.templates), [("f<int>".into(), 2, 14, 14)]);
    }
}
