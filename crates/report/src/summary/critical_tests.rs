//! Paths through small builds, and what holds for every build.

use super::*;
use crate::record::{InvocationRecord, Task};
use proptest::prelude::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A task of `name`, with times in ms since its call's start.
fn task(name: &str, queued: u64, started: u64, finished: u64, needs: &[u32]) -> Task {
    Task {
        tool: name.into(),
        queued: ms(queued),
        started: ms(started),
        finished: ms(finished),
        needs: needs.to_vec(),
        ..Task::default()
    }
}

fn call(file: &str, start: u64, wall: u64, tasks: Vec<Task>) -> InvocationRecord {
    InvocationRecord {
        since_boot_ns: (start + 1) * 1_000_000,
        wall: ms(wall),
        directory: "/p".into(),
        sources: vec![file.into()],
        tasks,
        ..InvocationRecord::default()
    }
}

fn path(records: Vec<InvocationRecord>) -> Vec<(String, u64, u64)> {
    let critical = find_path(&Build::new(records));
    let name = |segment: &Segment| match segment.kind {
        SegmentKind::Task => segment.tool.clone().unwrap_or_default(),
        other => format!("{other:?}"),
    };
    let millis = |time: Duration| u64::try_from(time.as_millis()).expect("small");
    let piece = |one: &Segment| (name(one), millis(one.from), millis(one.to));
    critical.segments.iter().map(piece).collect()
}

fn pieces(expected: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    let piece = |one: &(&str, u64, u64)| (one.0.to_owned(), one.1, one.2);
    expected.iter().map(piece).collect()
}

#[test]
fn an_empty_build_has_no_path() {
    assert_eq!(path(Vec::new()), []);
}

#[test]
fn within_a_call_it_follows_the_files() {
    let tasks = vec![
        task("pre", 10, 10, 40, &[]),
        task("short", 40, 40, 50, &[0]),
        task("cicc", 40, 40, 90, &[0]),
        task("ptxas", 90, 91, 120, &[2]),
        // Ended later than cicc, and is not what ptxas read.
        task("other", 10, 10, 90, &[]),
    ];
    assert_eq!(
        path(vec![call("a.cu", 0, 125, tasks)]),
        pieces(&[
            ("Warpcc", 0, 10),
            ("pre", 10, 40),
            ("cicc", 40, 90),
            ("Warpcc", 90, 91),
            ("ptxas", 91, 120),
            ("Warpcc", 120, 125),
        ])
    );
}

#[test]
fn a_wait_leads_to_the_task_that_had_the_slot() {
    let first = call("a.cu", 0, 100, vec![task("long", 0, 0, 100, &[])]);
    let mut waiting = task("late", 10, 101, 150, &[]);
    waiting.waited_for = Some(Wait::Memory);
    let second = call("b.cu", 0, 150, vec![waiting]);
    assert_eq!(
        path(vec![first.clone(), second.clone()]),
        pieces(&[("long", 0, 100), ("Waiting", 100, 101), ("late", 101, 150)])
    );
    let critical = find_path(&Build::new(vec![first, second]));
    assert_eq!(
        critical.segments.last().map(|last| last.why),
        Some(SegmentCause::Memory)
    );
    assert_eq!(critical.by_tool_s["long"], 0.1);
}

#[test]
fn between_calls_it_follows_the_build_tool() {
    let calls = vec![
        call("a.cu", 0, 50, vec![task("a", 5, 5, 50, &[])]),
        call("b.cu", 0, 60, vec![task("b", 5, 5, 58, &[])]),
        // Started when b ended, 10 ms later.
        call("c.cu", 70, 30, vec![task("c", 2, 2, 30, &[])]),
    ];
    assert_eq!(
        path(calls),
        pieces(&[
            ("Warpcc", 0, 5),
            ("b", 5, 58),
            ("Warpcc", 58, 60),
            ("Outside", 60, 70),
            ("Warpcc", 70, 72),
            ("c", 72, 100),
        ])
    );
}

#[test]
fn direct_hits_are_on_it_too() {
    let calls = vec![call("a.cu", 0, 5, vec![]), call("b.cu", 6, 4, vec![])];
    assert_eq!(
        path(calls),
        pieces(&[("Warpcc", 0, 5), ("Outside", 5, 6), ("Warpcc", 6, 10)])
    );
}

proptest! {
    /// Whatever the records say, the path ends, and covers the build without gap or overlap.
    #[test]
    fn it_covers_the_build(
        calls in proptest::collection::vec(
            (
                0..200_u64,
                0..100_u64,
                proptest::collection::vec((0..80_u64, 0..80_u64, 0..120_u64, 0..4_u32), 0..5),
            ),
            0..8,
        )
    ) {
        let records = calls.iter().map(|(start, wall, tasks)| {
            let tasks = tasks.iter().map(|(queued, started, finished, need)| {
                task("t", *queued, *started, *finished, &[*need])
            });
            call("x.cu", *start, *wall, tasks.collect())
        });
        let build = Build::new(records.collect());
        let critical = find_path(&build);
        let mut at = Duration::ZERO;
        for segment in &critical.segments {
            prop_assert_eq!(segment.from, at);
            prop_assert!(segment.to > segment.from);
            at = segment.to;
        }
        prop_assert_eq!(at, build.wall);
    }
}
