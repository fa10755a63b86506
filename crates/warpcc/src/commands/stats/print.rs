//! Writes the statistics for people.

use std::io::{self, Write};

use warpcc_cache::OtherVersion;
use warpcc_path_map::BASE;
use warpcc_report::monitor::harmless;
use warpcc_rtc::Usage;

use super::figures::{EXECUTOR, OTHER_VERSION, REMOTE, Stats, Step};
use crate::call_record::WOULD_SHARE;
use crate::commands::advice::advice;
use crate::config::format_bytes;
use crate::seconds::format_seconds;

/// The most projects that are shown.
const PROJECTS: usize = 5;

/// Writes the statistics for people, the summary first.
pub fn write_text(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let count = |name: &str| stats.count(&format!("invocations.{name}"));
    let total = count("total");
    let cache = format!(
        "Cache: {} in {}",
        format_bytes(stats.cache_bytes),
        counted(stats.cache_entries, "entry", "entries")
    );
    if total == 0 {
        writeln!(out, "Nothing compiled yet.")?;
        write_kernels(stats, out)?;
        writeln!(
            out,
            "{cache}\n\nCompile something: warpcc nvcc -c x.cu -o x.o"
        )?;
        return Ok(());
    }
    let direct = count("direct_hits");
    // `--version` and the like are no compilations, so they have no share.
    let passed = count("passed");
    let compilations = total.saturating_sub(passed);
    if let Some(avoided) = stats.avoided() {
        writeln!(out, "{avoided}")?;
    }
    writeln!(
        out,
        "{}, {} answered from the cache without nvcc\n",
        counted(compilations, "compilation", "compilations"),
        percent(direct, compilations)
    )?;
    for (name, words) in [
        ("direct_hits", "from the cache"),
        ("built", "built"),
        ("fallbacks", "bypassed"),
        ("failed", "failed"),
    ] {
        writeln!(out, "  {words:<20}{:>10}", count(name))?;
    }
    if passed > 0 {
        writeln!(out, "  {:<20}{passed:>10}", "nothing to cache")?;
    }
    if stats.spent.is_none() && !stats.saved.is_zero() {
        let saved = format_seconds(stats.saved);
        writeln!(out, "\nSaved {saved} of compiler time.")?;
    }
    writeln!(out, "\n  {:<20}{:>10}{:>10}", "step", "from cache", "run")?;
    for Step { tool, hits, misses } in stats.steps() {
        let share = percent(hits, hits.saturating_add(misses));
        writeln!(out, "  {tool:<20}{hits:>10}{misses:>10}{share:>8}")?;
    }
    write_elsewhere(stats, out)?;
    write_reasons(stats, out)?;
    write_folders(stats, out)?;
    write_kernels(stats, out)?;
    writeln!(out, "\n{cache}")?;
    write_other_versions(stats, out)?;
    writeln!(out, "\nWhy did it miss: warpcc why")
}

/// Writes what is in formats that are not read, what it cost, and how it goes.
fn write_other_versions(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    if stats.other_versions.is_empty() {
        return Ok(());
    }
    let sum = |of: fn(&OtherVersion) -> u64| stats.other_versions.iter().map(of).sum::<u64>();
    let folders: Vec<&str> = stats
        .other_versions
        .iter()
        .map(|v| v.folder.as_str())
        .collect();
    writeln!(
        out,
        "Left by other versions of warpcc, unused by this one: {} in {} ({})",
        format_bytes(sum(|v| v.bytes)),
        counted(sum(|v| v.entries), "entry", "entries"),
        harmless(&folders.join(", "))
    )?;
    let misses = stats.count(OTHER_VERSION);
    if misses > 0 {
        let misses = counted(misses, "look-up", "look-ups");
        writeln!(
            out,
            "  {misses} missed that such an entry would have answered"
        )?;
    }
    writeln!(out, "  Remove them: warpcc cache gc --other-versions")
}

/// Writes the work of other machines.
fn write_elsewhere(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let remote = |name: &str| stats.count(&format!("remote.{name}"));
    let away = |name: &str| stats.count(&format!("executor.{name}"));
    let executed = remote("executed");
    if executed > 0 || EXECUTOR.iter().any(|name| away(name) > 0) {
        writeln!(
            out,
            "\nRun on a cluster: {}, {}; {} down, {} up",
            counted(executed, "step", "steps"),
            counted(away("errors"), "error", "errors"),
            format_bytes(away("bytes_down")),
            format_bytes(away("bytes_up"))
        )?;
    }
    let shared = REMOTE.iter().filter(|name| **name != "executed");
    if shared.into_iter().any(|name| remote(name) > 0) {
        writeln!(
            out,
            "\nShared caches: {} hits, {} misses, {} uploaded, {}; {} down, {} up",
            remote("hits"),
            remote("misses"),
            remote("uploads"),
            counted(remote("errors"), "error", "errors"),
            format_bytes(remote("bytes_down")),
            format_bytes(remote("bytes_up"))
        )?;
        let limited = remote("rate_limited");
        if limited > 0 {
            writeln!(
                out,
                "  not uploaded: {limited}, because the server limits uploads (429)"
            )?;
        }
        let ignored = remote("ignored_entries");
        if ignored > 0 {
            writeln!(
                out,
                "  ignored: {} of GitHub's cache, which warpcc has not written or which {} damaged",
                counted(ignored, "entry", "entries"),
                if ignored == 1 { "is" } else { "are" }
            )?;
        }
        let rejected = [
            remote("unsigned"),
            remote("foreign"),
            remote("bad_signature"),
        ];
        if rejected.iter().any(|count| *count > 0) {
            let [unsigned, foreign, bad] = rejected;
            writeln!(
                out,
                "  rejected: {unsigned} unsigned, {foreign} signed with an untrusted key, {bad} with a wrong signature"
            )?;
        }
    }
    Ok(())
}

/// Writes what programs found and compiled at run time.
fn write_kernels(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let Usage {
        disk,
        shared,
        made,
        making,
        finding,
    } = stats.kernels;
    if disk + shared + made == 0 && making.is_zero() {
        return Ok(());
    }
    writeln!(
        out,
        "\nKernels at run time: {disk} found on disk, {shared} in shared caches ({}), {made} compiled ({})",
        format_seconds(finding),
        format_seconds(making)
    )
}

/// Writes why calls were bypassed, with advice.
fn write_reasons(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let reasons = stats.reasons();
    if !reasons.is_empty() {
        writeln!(out, "\nBypassed because of")?;
        for (reason, count) in reasons {
            writeln!(out, "{count:>10}  {}", harmless(reason))?;
            writeln!(out, "{:>10}  {}", "", advice(reason))?;
        }
    }
    Ok(())
}

/// Writes the compilations that other folders could share, and the hits of each project's folder.
fn write_folders(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let shared = stats.count(WOULD_SHARE);
    if shared > 0 {
        writeln!(
            out,
            "\n{} had been built before in another folder. With WARPCC_BASE_DIR=auto the\n\
             cache answers across folders; the objects then name sources below {BASE}\n\
             (docs/keys.md, Clones).",
            counted(shared, "compilation", "compilations")
        )?;
    }
    if !stats.projects.is_empty() {
        writeln!(
            out,
            "\nCompilations in recorded builds, the share of hits, and the folder"
        )?;
        for project in stats.projects.iter().take(PROJECTS) {
            let share = percent(project.direct_hits, project.calls);
            let folder = project.folder.display().to_string();
            writeln!(
                out,
                "{:>10}{share:>6}  {}",
                project.calls,
                harmless(&folder)
            )?;
        }
    }
    Ok(())
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let share = u128::from(part) * 100 / u128::from(whole);
    format!("{share}%")
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::figures::Project;
    use super::super::json::write_json;
    use super::*;
    use crate::commands::output::text_of;

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
            ("record_other_version", 3),
            ("fallback_reasons.unknown option", 1),
            ("fallback_reasons.unknown tool", 1),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
        Stats {
            counters,
            cache_bytes: 1_500_000_000,
            cache_entries: 4321,
            other_versions: vec![OtherVersion {
                folder: "steps-v3".to_owned(),
                bytes: 40_960,
                entries: 10,
            }],
            saved: Duration::from_millis(754_300),
            spent: Some(Duration::from_millis(245_700)),
            projects: [("/home/ada/llama.cpp/build", 96, 130), ("/tmp/x", 0, 1)]
                .map(|(folder, direct_hits, calls)| Project {
                    folder: folder.into(),
                    calls,
                    direct_hits,
                    saved: Duration::from_secs(direct_hits),
                })
                .into(),
            kernels: Usage {
                disk: 1234,
                shared: 5,
                made: 40,
                making: Duration::from_millis(3210),
                finding: Duration::from_millis(62),
            },
        }
    }

    #[test]
    fn stats_read_well() {
        insta::assert_snapshot!("stats", text_of(|out| write_text(&counted(), out)));
        let before = Stats {
            spent: None,
            ..counted()
        };
        let text = text_of(|out| write_text(&before, out));
        assert!(text.contains("Saved 754 s of compiler time."), "{text}");
        assert!(!text.contains("avoided"), "{text}");
        insta::assert_snapshot!("stats_json", text_of(|out| write_json(&counted(), out)));
        let kernels_only = Stats {
            kernels: counted().kernels,
            ..Stats::default()
        };
        let text = text_of(|out| write_text(&kernels_only, out));
        assert!(text.contains("40 compiled (3.21 s)"), "{text}");
        let none = Stats::default();
        insta::assert_snapshot!("stats_none", text_of(|out| write_text(&none, out)));
        insta::assert_snapshot!("stats_json_none", text_of(|out| write_json(&none, out)));
    }
}
