//! Tests of graphs, tables, traces and timelines: how they read, and that no run breaks its format.

use std::time::Duration;

use proptest::prelude::*;

use super::sample::compilation;
use super::{table, trace, verbose};
use crate::commands::graph::{write_dot, write_png, write_svg};
use crate::commands::output::text_of;
use crate::commands::timeline::{FileRole, FileRow, Run, TaskOutcome, TaskRow};

/// A run with something of everything.
fn eventful() -> Run {
    let mut run = compilation(2);
    let last = run.rows.len() - 1;
    run.rows[last - 1].outcome = TaskOutcome::Failed(2);
    run.rows[last].outcome = TaskOutcome::Skipped;
    run.rows[last].files[0].size = None;
    run
}

#[test]
fn texts_read_well() {
    let run = eventful();
    insta::assert_snapshot!("dot", text_of(|out| write_dot(&run, out)));
    insta::assert_snapshot!("csv", text_of(|out| table::write(&run, out)));
    insta::assert_snapshot!("verbose", text_of(|out| verbose::write(&run, out)));
}

#[test]
fn the_path_that_decided_the_time_ends_with_the_last_command() {
    let run = compilation(8);
    let tools: Vec<_> = run
        .critical_path()
        .into_iter()
        .map(|row| run.rows[row].tool.as_str())
        .collect();
    assert_eq!(
        tools,
        ["host", "fatbinary", "ptxas", "cicc", "cudafe++", "host"]
    );
}

#[test]
fn lanes_are_reused_as_soon_as_they_are_free() {
    let mut run = compilation(1);
    for (at, row) in run.rows.iter_mut().enumerate() {
        row.started = Duration::from_secs(at as u64);
        row.finished = Duration::from_secs(at as u64 + 1);
    }
    assert!(run.lanes().iter().all(|lane| *lane == 0));
    run.rows[0].finished = Duration::from_secs(2);
    assert_eq!(run.lanes()[..3], [0, 1, 0]);
}

#[test]
fn a_picture_has_the_drawing_in_it() {
    let mut png = Vec::new();
    write_png(&compilation(8), &mut png).unwrap();
    let picture = tiny_skia::Pixmap::decode_png(&png).unwrap();
    let mut colors: Vec<_> = picture
        .pixels()
        .iter()
        .map(|pixel| (pixel.red(), pixel.green(), pixel.blue()))
        .collect();
    colors.sort_unstable();
    colors.dedup();
    assert!(colors.len() > 50, "{} colours", colors.len());
    // To look at: WARPCC_TEST_PICTURES=/tmp/pictures cargo test -p warpcc picture
    if let Some(folder) = std::env::var_os("WARPCC_TEST_PICTURES").map(std::path::PathBuf::from) {
        std::fs::write(folder.join("graph.png"), png).unwrap();
        std::fs::write(
            folder.join("graph.svg"),
            text_of(|out| write_svg(&compilation(8), out)),
        )
        .unwrap();
        let mut small = Vec::new();
        write_png(&eventful(), &mut small).unwrap();
        std::fs::write(folder.join("small.png"), small).unwrap();
    }
}

fn any_row() -> impl Strategy<Value = TaskRow> {
    let words = "\\PC*|[\\x00-\\x7f]*|[a-z+]{1,9}";
    let outcome = prop_oneof![
        Just(TaskOutcome::Ran),
        Just(TaskOutcome::Hit),
        Just(TaskOutcome::Skipped),
        any::<i32>().prop_map(TaskOutcome::Failed),
    ];
    let times = (0_u64..5_000, 0_u64..5_000, any::<u64>());
    let edges = prop::collection::vec((0_usize..9, words), 0..4);
    (
        0_usize..9,
        prop::option::of(words),
        words,
        words,
        times,
        outcome,
        edges,
    )
        .prop_map(
            |(number, arch, tool, command, (started, finished, peak_kib), outcome, why_edges)| {
                TaskRow {
                    number,
                    label: tool.clone(),
                    tool,
                    arch,
                    command,
                    started: Duration::from_millis(started),
                    finished: Duration::from_millis(finished),
                    user: Duration::from_millis(started),
                    system: Duration::ZERO,
                    peak_kib,
                    outcome,
                    files: why_edges
                        .iter()
                        .map(|(_, name)| FileRow {
                            name: name.clone(),
                            size: None,
                            role: FileRole::Writes,
                        })
                        .collect(),
                    needs: why_edges.iter().map(|(number, _)| number + 1).collect(),
                    why_edges,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
    #[test]
    fn any_run_is_well_formed(rows in prop::collection::vec(any_row(), 0..8), title in "\\PC*") {
        let run = Run { title, rows, environment: Vec::new(), wall: Duration::ZERO };
        let svg = text_of(|out| write_svg(&run, out));
        let drawing = roxmltree::Document::parse(&svg);
        prop_assert!(drawing.is_ok(), "{:?}\n{svg}", drawing.err());
        let trace = text_of(|out| trace::write(&run, out));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&trace).is_ok());
        let table = text_of(|out| table::write(&run, out));
        let rows = csv::Reader::from_reader(table.as_bytes()).into_records().collect::<Result<Vec<_>, _>>();
        prop_assert_eq!(rows.map(|rows| rows.len()).ok(), Some(run.rows.len()));
        let dot = text_of(|out| write_dot(&run, out));
        let lines = 5 + run.rows.len() + run.edges().len();
        prop_assert_eq!(dot.split('\n').count(), lines + 1);
        let verbose = text_of(|out| verbose::write(&run, out));
        prop_assert_eq!(verbose.split('\n').count(), 2 + 3 * run.rows.len());
    }
}
