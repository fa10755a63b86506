//! Tests of every report: how it reads, and that no run breaks its format.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use proptest::prelude::*;

use super::sample::compilation;
use super::stats::Stats;
use super::timeline::{FileRole, FileRow, Run, TaskOutcome, TaskRow, format_seconds};
use super::why::{FileChange, FileDifference, PartDifference, Why};
use super::{
    build, cache, settings, stats, table, trace, verbose, why, write_dot, write_png, write_svg,
};
use crate::config::{Config, MaxSize};

fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

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
    insta::assert_snapshot!("dot", text(|out| write_dot(&run, out)));
    insta::assert_snapshot!("csv", text(|out| table::write(&run, out)));
    insta::assert_snapshot!("verbose", text(|out| verbose::write(&run, out)));
}

fn counted() -> Stats {
    let counters: BTreeMap<String, u64> = [
        ("invocations.total", 131),
        ("invocations.direct_hits", 96),
        ("invocations.built", 30),
        ("invocations.fallbacks", 2),
        ("invocations.passed", 3),
        ("steps.cicc.hits", 40),
        ("steps.cicc.misses", 20),
        ("steps.ptxas.hits", 7),
        ("steps.tileiras.misses", 1),
        ("remote.hits", 12),
        ("remote.misses", 30),
        ("remote.errors", 2),
        ("remote.bytes_down", 34_500_000),
        ("remote.executed", 7),
        ("executor.errors", 1),
        ("executor.bytes_up", 150_000_000),
        ("executor.bytes_down", 2_500_000),
        ("base_dir.would_share", 4),
        ("fallback_reasons.unknown option", 1),
        ("fallback_reasons.unknown tool", 1),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    Stats {
        counters,
        cache_bytes: 1_500_000_000,
        cache_entries: 4321,
        saved: Duration::from_millis(754_300),
        projects: [("/home/ada/llama.cpp/build", 96, 130), ("/tmp/x", 0, 1)]
            .map(|(folder, direct_hits, calls)| stats::Project {
                folder: folder.into(),
                calls,
                direct_hits,
                saved: Duration::from_secs(direct_hits),
            })
            .into(),
    }
}

#[test]
fn stats_read_well() {
    insta::assert_snapshot!("stats", text(|out| stats::write_text(&counted(), out)));
    insta::assert_snapshot!("stats_json", text(|out| stats::write_json(&counted(), out)));
    let none = Stats::default();
    insta::assert_snapshot!("stats_none", text(|out| stats::write_text(&none, out)));
    insta::assert_snapshot!("stats_json_none", text(|out| stats::write_json(&none, out)));
}

#[test]
fn progress_fits_its_line() {
    let standing = super::progress::Standing {
        done: 12,
        total: 44,
        running: vec![
            "cicc compute_90".into(),
            "ptxas sm_80".into(),
            "host\n".into(),
        ],
    };
    let line = |columns| super::progress::text(&standing, Duration::from_millis(8240), columns);
    assert_eq!(
        line(80),
        "warpcc: 12/44  8.24 s  cicc compute_90, ptxas sm_80, host\u{fffd}"
    );
    assert_eq!(line(40), "warpcc: 12/44  8.24 s  cicc compute_90…");
    assert_eq!(line(0).chars().count(), 19);
}

#[test]
fn builds_read_well() {
    use std::time::Duration;
    use warpcc_report::history::Remembered;
    let made_up = warpcc_report::Build::new(warpcc_report::sample::build(&Default::default()));
    let summary = warpcc_report::Summary::of(&made_up);
    insta::assert_snapshot!("build", text(|out| build::write_text(&summary, out)));
    let nothing = warpcc_report::Summary::of(&warpcc_report::Build::default());
    insta::assert_snapshot!("build_none", text(|out| build::write_text(&nothing, out)));
    let remembered = |id: &str, driver: Option<&str>, seconds: u64, calls| Remembered {
        id: id.into(),
        driver: driver.map(Into::into),
        started_unix_ns: seconds * 1_000_000_000,
        calls,
    };
    let builds = [
        remembered("ninja-0123456789", Some("ninja -j16"), 9_990, 240),
        remembered("mine\n", None, 100, 1),
    ];
    let now = Duration::from_secs(10_000);
    insta::assert_snapshot!(
        "build_list",
        text(|out| build::write_list_at(&builds, now, out))
    );
}

#[test]
fn settings_read_well() {
    let env = |name: &str| match name {
        "HOME" => Some("/home/ada".into()),
        "WARPCC_JOBS" => Some("8".into()),
        // Or else it is this machine's.
        "WARPCC_MEMORY" => Some("48G".into()),
        _ => None,
    };
    let config = Config::load(env).unwrap();
    let (rows, file) = (config.rows(), config.file.as_deref());
    insta::assert_snapshot!(
        "settings",
        text(|out| settings::write_text(&rows, file, out))
    );
    let json = text(|out| settings::write_json(&rows, out));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["jobs"]["source"], "environment WARPCC_JOBS");
}

#[test]
fn why_reads_well() {
    let part = |name: &str, old: Option<&str>, new: Option<&str>| PartDifference {
        name: name.into(),
        old: old.map(Into::into),
        new: new.map(Into::into),
    };
    let file = |kind, path: &str| FileDifference {
        kind,
        path: path.into(),
    };
    let differs = Why::Differs {
        parts: vec![
            part("option", Some("-O2"), Some("-O3")),
            part("option", None, Some("-lineinfo")),
            part("environment", Some("CPATH=/a\n/b"), None),
        ],
        files: vec![
            file(FileChange::HeaderChanged, "include/a.h"),
            file(FileChange::Appeared, "include/cub/config.h"),
            file(
                FileChange::Shadows("/usr/include/b.h".into()),
                "include/b.h",
            ),
        ],
    };
    insta::assert_snapshot!("why", text(|out| why::write(&differs, out)));
    let one = Why::Differs {
        parts: vec![],
        files: vec![file(FileChange::SourceChanged, "x.cu")],
    };
    assert_eq!(
        text(|out| why::write(&one, out)),
        "1 thing differs from what the cache remembers:\n  source x.cu changed\n"
    );
    let damaged = Why::Differs {
        parts: vec![],
        files: vec![],
    };
    for other in [
        Why::Hit,
        Why::NeverSeen,
        Why::Fallback("a reason".into()),
        damaged,
    ] {
        assert!(text(|out| why::write(&other, out)).ends_with('\n'));
    }
}

#[test]
fn cache_answers_read_well() {
    let size = |limit| text(|out| cache::write_size(5 << 30, 1, MaxSize::from_bytes(limit), out));
    assert_eq!(size(20 << 30), "5 GiB of 20 GiB (25%) in 1 entry\n");
    assert_eq!(size(0), "5 GiB, without a limit, in 1 entry\n");
    assert_eq!(
        text(|out| cache::write_removed(0, 0, out)),
        "removed 0 entries, 0 B\n"
    );
    let verified = text(|out| cache::write_verified(7, &["steps/ab".into()], out));
    assert_eq!(
        verified,
        "7 entries checked, 1 damaged and removed:\n  steps/ab\n"
    );
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
fn seconds_have_three_figures() {
    for (ms, expected) in [
        (0, "0 s"),
        (4, "0.004 s"),
        (1240, "1.24 s"),
        (9_999, "10.0 s"),
        (75_000, "75.0 s"),
        (750_000, "750 s"),
    ] {
        assert_eq!(format_seconds(Duration::from_millis(ms)), expected);
    }
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
            text(|out| write_svg(&compilation(8), out)),
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
        let svg = text(|out| write_svg(&run, out));
        let drawing = roxmltree::Document::parse(&svg);
        prop_assert!(drawing.is_ok(), "{:?}\n{svg}", drawing.err());
        let trace = text(|out| trace::write(&run, out));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&trace).is_ok());
        let table = text(|out| table::write(&run, out));
        let rows = csv::Reader::from_reader(table.as_bytes()).into_records().collect::<Result<Vec<_>, _>>();
        prop_assert_eq!(rows.map(|rows| rows.len()).ok(), Some(run.rows.len()));
        let dot = text(|out| write_dot(&run, out));
        let lines = 5 + run.rows.len() + run.edges().len();
        prop_assert_eq!(dot.split('\n').count(), lines + 1);
        let verbose = text(|out| verbose::write(&run, out));
        prop_assert_eq!(verbose.split('\n').count(), 2 + 3 * run.rows.len());
    }
}
