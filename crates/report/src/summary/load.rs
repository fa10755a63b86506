//! How busy the machine was: tasks at once, memory, and what tasks had to wait for.
//!
//! A task's memory counts with its peak for the whole time of the task, so the sum at a moment is at least the memory
//! that was really used. That is also how the scheduler plans.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::build::Build;
use crate::record::Wait;

/// This many samples show the course of a build of any length.
const SAMPLES: u32 = 240;

/// Load over the whole build.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Load {
    /// Tasks at once, on average.
    pub mean_running: f64,
    /// Tasks at once, at most.
    pub most_running: usize,
    /// How long as many tasks ran as there are slots.
    #[serde(rename = "full_s", serialize_with = "crate::seconds::serialize")]
    pub full: Duration,
    /// How long the build went on after the slots were full for the last time: it waited for single files.
    #[serde(rename = "tail_s", serialize_with = "crate::seconds::serialize")]
    pub tail: Duration,
    /// The largest sum of peaks of tasks that ran at once, KiB.
    pub peak_kib: u64,
    /// The load over time, at equal distances.
    pub course: Vec<Sample>,
    /// The waits of tasks that could have run, by reason.
    pub waited: BTreeMap<Wait, Waited>,
    /// How often a task was stopped to free memory.
    pub evicted: u64,
}

/// A piece of the course.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Its start, since the build's.
    #[serde(rename = "from_s", serialize_with = "crate::seconds::serialize")]
    pub from: Duration,
    /// Tasks at once, on average.
    pub running: f64,
    /// The largest sum of peaks within it, KiB.
    pub peak_kib: u64,
}

/// Waits for one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Waited {
    /// Tasks.
    pub tasks: usize,
    /// How long they waited together.
    #[serde(rename = "total_s", serialize_with = "crate::seconds::serialize")]
    pub total: Duration,
}

/// A moment at which something started or ended.
struct LoadChange {
    at: Duration,
    running: i64,
    kib: i64,
}

pub(super) fn measure(build: &Build) -> Load {
    let mut load = Load::default();
    let mut events = Vec::new();
    for (span, _, task) in build.tasks() {
        load.evicted += u64::from(task.evicted);
        if let Some(reason) = task.waited_for {
            let waited = load.waited.entry(reason).or_default();
            waited.tasks += 1;
            waited.total = waited.total.saturating_add(span.started - span.queued);
        }
        if task.ran() && !span.elapsed().is_zero() {
            // More than a PiB cannot be a real amount of memory.
            let kib = i64::try_from(task.peak_kib.min(1 << 40)).unwrap_or(0);
            let event = |at, sign| LoadChange {
                at,
                running: sign,
                kib: sign * kib,
            };
            events.extend([event(span.started, 1), event(span.finished, -1)]);
        }
    }
    // At the same moment ends come first, so that the sum never overshoots.
    events.sort_by_key(|event| (event.at, event.running));
    course(build.wall, &events, &mut load);
    fullness(build, &events, &mut load);
    load
}

fn course(wall: Duration, events: &[LoadChange], load: &mut Load) {
    if wall.is_zero() {
        return;
    }
    let step = wall.as_secs_f64() / f64::from(SAMPLES);
    load.course = (0..SAMPLES)
        .map(|at| Sample {
            from: Duration::from_secs_f64(step * f64::from(at)),
            ..Sample::default()
        })
        .collect();
    let (mut running, mut kib, mut since) = (0_i64, 0_i64, Duration::ZERO);
    let mut busy = 0.0;
    for event in events {
        let stretch = (since.as_secs_f64(), event.at.as_secs_f64());
        busy += running as f64 * (stretch.1 - stretch.0);
        spread(&mut load.course, step, stretch, running, kib);
        running += event.running;
        kib += event.kib;
        since = event.at;
        load.most_running = load.most_running.max(usize::try_from(running).unwrap_or(0));
        load.peak_kib = load.peak_kib.max(u64::try_from(kib).unwrap_or(0));
    }
    load.mean_running = busy / wall.as_secs_f64();
}

fn fullness(build: &Build, events: &[LoadChange], load: &mut Load) {
    let slots = i64::from(build.budget.slots);
    if slots == 0 {
        return;
    }
    let (mut running, mut since, mut last) = (0, Duration::ZERO, Duration::ZERO);
    for event in events {
        if running >= slots {
            load.full = load.full.saturating_add(event.at - since);
            last = event.at;
        }
        running += event.running;
        since = event.at;
    }
    load.tail = build.wall.saturating_sub(last);
}

/// Adds a stretch of constant load to the samples that it touches.
fn spread(course: &mut [Sample], step: f64, (from, to): (f64, f64), running: i64, kib: i64) {
    if to <= from || running == 0 {
        return;
    }
    let first = (from / step) as usize;
    let last = ((to / step) as usize).min(course.len().saturating_sub(1));
    let touched = course.iter_mut().enumerate().take(last + 1);
    for (at, sample) in touched.skip(first.min(last)) {
        let start = at as f64 * step;
        let share = (to.min(start + step) - from.max(start)).max(0.0) / step;
        sample.running += running as f64 * share;
        sample.peak_kib = sample.peak_kib.max(u64::try_from(kib).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{InvocationRecord, Task};

    #[test]
    fn load_adds_up() {
        let task = |from: u64, to: u64, kib| Task {
            tool: "cicc".into(),
            queued: Duration::ZERO,
            started: Duration::from_secs(from),
            finished: Duration::from_secs(to),
            waited_for: (from > 0).then_some(Wait::Memory),
            peak_kib: kib,
            ..Task::default()
        };
        let build = Build::new(vec![InvocationRecord {
            wall: Duration::from_secs(24),
            budget: crate::record::Budget {
                slots: 2,
                memory_kib: 0,
            },
            tasks: vec![task(0, 12, 100), task(6, 12, 50), task(12, 24, 70)],
            ..InvocationRecord::default()
        }]);
        let load = measure(&build);
        assert_eq!((load.most_running, load.peak_kib), (2, 150));
        assert!((load.mean_running - 1.25).abs() < 1e-9);
        assert_eq!(
            (load.full, load.tail),
            (Duration::from_secs(6), Duration::from_secs(12))
        );
        let middle = &load.course[(SAMPLES as usize) * 8 / 24];
        assert!((middle.running - 2.0).abs() < 1e-9);
        assert_eq!(middle.peak_kib, 150);
        let waited = load.waited[&Wait::Memory];
        assert_eq!((waited.tasks, waited.total), (2, Duration::from_secs(18)));
    }

    #[test]
    fn nothing_is_no_load() {
        assert_eq!(measure(&Build::new(Vec::new())), Load::default());
    }
}
