//! Summarises the log, as text and as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::Settings;
use crate::device::Failure;

/// Of each group how many were checked, and those that were wrong.
type GroupResults = BTreeMap<String, (usize, Vec<Json>)>;

/// Tells what was found and writes it down. Whether all is right.
pub fn report(
    settings: &Settings,
    lines: &[Json],
    broken: &[(usize, String)],
    done: bool,
    begun: Instant,
) -> Result<bool, Failure> {
    let groups = groups(lines, broken);
    let speeds: Vec<&Json> = lines
        .iter()
        .filter_map(|line| line.get("data").filter(|data| !data.is_null()))
        .collect();
    let find = |key: &str| {
        let found = lines.iter().rev().find_map(|line| line.get(key).cloned());
        found.unwrap_or(Json::Null)
    };
    let right = done && groups.values().all(|(_, failures)| failures.is_empty());
    show(&groups, &speeds);
    println!(
        "copy: {} GB/s; {:.1} s; {}",
        find("copy_gb_per_s"),
        begun.elapsed().as_secs_f64(),
        if right { "all right" } else { "NOT all right" }
    );
    let summary: BTreeMap<&String, Json> = groups
        .iter()
        .map(|(name, (count, failures))| {
            (
                name,
                json!({"checked": count, "wrong": failures.len(), "failures": failures}),
            )
        })
        .collect();
    let result = json!({
        "seed": settings.seed, "gpu": find("gpu"), "capability": find("capability"), "driver": find("driver"),
        "arch": settings.arch, "finished": done, "seconds": begun.elapsed().as_secs_f64(),
        "copy_gb_per_s": find("copy_gb_per_s"), "groups": summary, "speeds": speeds,
    });
    fs::write(&settings.out, format!("{result:#}\n"))
        .map_err(|error| format!("{}: {error}", settings.out.display()))?;
    Ok(right)
}

fn word<'a>(line: &'a Json, key: &str) -> &'a str {
    line.get(key).and_then(Json::as_str).unwrap_or("")
}

fn groups(lines: &[Json], broken: &[(usize, String)]) -> GroupResults {
    let mut groups = GroupResults::new();
    let mut count = |line: &Json, failure: Option<Json>| {
        let group = groups.entry(word(line, "group").to_owned()).or_default();
        group.0 += 1;
        group.1.extend(failure);
    };
    for line in lines.iter().filter(|line| line.get("end").is_some()) {
        count(line, (!line["error"].is_null()).then(|| line.clone()));
    }
    for (number, why) in broken {
        let is_it = |line: &&Json| line.get("start").and_then(Json::as_u64) == Some(*number as u64);
        if let Some(line) = lines.iter().find(is_it) {
            let failure = json!({"label": word(line, "label"), "error": why});
            count(line, Some(failure));
        }
    }
    groups
}

fn show(groups: &GroupResults, speeds: &[&Json]) {
    for speed in speeds {
        println!(
            "{:6.1} GB/s {:5.3} of copy  {}",
            speed["gb_per_s"].as_f64().unwrap_or(0.0),
            speed["of_copy"].as_f64().unwrap_or(0.0),
            word(speed, "label")
        );
    }
    for (name, (count, failures)) in groups {
        for failure in failures.iter().take(25) {
            println!(
                "WRONG {name}: {}: {}",
                word(failure, "label"),
                word(failure, "error").chars().take(600).collect::<String>()
            );
        }
        println!("{name}: {count} checked, {} wrong", failures.len());
    }
}
