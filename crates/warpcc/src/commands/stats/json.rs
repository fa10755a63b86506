//! The statistics as JSON.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use warpcc_cache::OtherVersion;

use super::figures::{EXECUTOR, OTHER_VERSION, REMOTE, Stats, Step};
use crate::call_record::WOULD_SHARE;

/// Writes the statistics as JSON. Every key is always there.
pub fn write_json(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let mut invocations = Map::new();
    for name in [
        "total",
        "direct_hits",
        "built",
        "fallbacks",
        "failed",
        "passed",
    ] {
        invocations.insert(
            name.into(),
            stats.count(&format!("invocations.{name}")).into(),
        );
    }
    let step = |step: Step<'_>| {
        (
            step.tool.to_owned(),
            json!({ "hits": step.hits, "misses": step.misses }),
        )
    };
    let steps: Map<String, Value> = stats.steps().into_iter().map(step).collect();
    let reasons: Map<String, Value> = stats
        .reasons()
        .into_iter()
        .map(|(text, count)| (text.into(), count.into()))
        .collect();
    let projects: Vec<Value> = stats
        .projects
        .iter()
        .map(|project| {
            json!({
                "directory": project.folder.display().to_string(),
                "calls": project.calls,
                "direct_hits": project.direct_hits,
                "saved_seconds": project.saved.as_secs_f64(),
            })
        })
        .collect();
    let away = |name: &str| stats.count(&format!("executor.{name}"));
    let remote: Map<String, Value> = REMOTE
        .into_iter()
        .map(|name| {
            // Here caches and the cluster count together.
            let both = stats
                .count(&format!("remote.{name}"))
                .saturating_add(away(name));
            (name.into(), both.into())
        })
        .collect();
    let executor: Map<String, Value> = EXECUTOR
        .into_iter()
        .map(|name| (name.into(), away(name).into()))
        .collect();
    let folder =
        |v: &OtherVersion| json!({ "name": v.folder, "bytes": v.bytes, "entries": v.entries });
    let other_versions: Vec<Value> = stats.other_versions.iter().map(folder).collect();
    let all = json!({
        "saved_seconds": stats.saved.as_secs_f64(),
        "spent_seconds": stats.spent.map(|spent| spent.as_secs_f64()),
        "projects": projects,
        "invocations": invocations,
        "steps": steps,
        "fallback_reasons": reasons,
        "base_dir": { "would_share": stats.count(WOULD_SHARE) },
        "remote": remote,
        "executor": executor,
        "kernels": {
            "disk": stats.kernels.disk,
            "shared": stats.kernels.shared,
            "made": stats.kernels.made,
            "made_seconds": stats.kernels.making.as_secs_f64(),
            "found_seconds": stats.kernels.finding.as_secs_f64(),
        },
        "cache": { "bytes": stats.cache_bytes, "entries": stats.cache_entries },
        "other_versions": { "misses": stats.count(OTHER_VERSION), "folders": other_versions },
    });
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)
}
