//! Counts the results of a run of the machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files_open;
use super::judge::Verdict;
use super::space::Space;

/// Counts, for people and as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SoakFigures {
    /// Histories that ran.
    pub histories: u64,
    /// Steps in them that were no calls.
    pub changes: u64,
    /// Calls that were compared.
    pub calls: u64,
    /// Calls in which nvcc failed.
    pub failing_calls: u64,
    /// Histories with a wrong call.
    pub wrong: u64,
    /// Direct hits, the wrong ones among them.
    pub direct_hits: u64,
    /// Histories whose steps were counted: one of ten, because counting needs a process.
    pub sampled: u64,
    /// Of those, steps whose results came from the cache.
    pub step_hits: u64,
    /// Of those, steps that ran.
    pub step_misses: u64,
    /// Calls that warpcc planned and ran itself.
    pub built: u64,
    /// Calls bypassed, by reason.
    pub bypassed: BTreeMap<String, u64>,
    /// Results that were not stored, by reason.
    pub unstored: BTreeMap<String, u64>,
    /// Wrong histories that were shrunk, by their shape.
    pub shapes: BTreeMap<String, u64>,
    /// Seed and first difference of the first wrong history.
    pub first_wrong: Option<(u64, String)>,
    /// Files of failing histories.
    pub saved: Vec<PathBuf>,
    /// Calls in which warpcc reached a limit of the shell, warned of it, and gave nvcc's result.
    pub limit_warnings: u64,
}

/// `warpcc stats --json` of a space's cache, for one seed of ten.
pub fn stats(space: &Space, seed: u64) -> Value {
    if !seed.is_multiple_of(10) {
        return Value::Null;
    }
    let mut command = Command::new(&space.warpcc);
    command
        .args(["stats", "--json"])
        .env("WARPCC_DIR", space.root.join("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let started = {
        let _quiet = files_open::no_file_open();
        command.spawn()
    };
    let output = started.and_then(std::process::Child::wait_with_output);
    output
        .ok()
        .and_then(|output| serde_json::from_slice(&output.stdout).ok())
        .unwrap_or(Value::Null)
}

impl SoakFigures {
    /// Adds one history.
    pub fn count(&mut self, seed: u64, verdict: &Verdict, stats: &Value) {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        self.histories += 1;
        self.changes += verdict.changes;
        self.calls += verdict.calls;
        self.failing_calls += verdict.failing;
        self.limit_warnings += verdict.limit_warnings;
        if let Some((_, found)) = &verdict.wrong {
            self.wrong += 1;
            let first = found.first().cloned().unwrap_or_default();
            self.first_wrong.get_or_insert((seed, first));
        }
        self.sampled += u64::from(!stats.is_null());
        for (_, step) in stats["steps"].as_object().into_iter().flatten() {
            self.step_hits += number(&step["hits"]);
            self.step_misses += number(&step["misses"]);
        }
        for line in &verdict.log {
            self.direct_hits += u64::from(line == "direct hit");
            self.built += u64::from(line.starts_with("built, "));
            if let Some(why) = line.strip_prefix("running nvcc: ") {
                let reason = why.split(": ").next().unwrap_or(why).to_owned();
                *self.bypassed.entry(reason).or_default() += 1;
            }
            let reason = line
                .split_once("will not hit as a whole: ")
                .or_else(|| line.split_once(" not stored: "));
            if let Some((_, reason)) = reason {
                // Paths differ from history to history.
                let words = reason.split(' ').filter(|w| !w.contains('/'));
                let without = words.collect::<Vec<_>>().join(" ");
                // A reason that is only a path needs to be looked into.
                let shown = if without.is_empty() { reason } else { &without };
                *self.unstored.entry(shown.to_owned()).or_default() += 1;
            }
        }
    }

    /// Adds the figures of another worker.
    pub fn merge(&mut self, other: Self) {
        for (ours, theirs) in [
            (&mut self.histories, other.histories),
            (&mut self.changes, other.changes),
            (&mut self.calls, other.calls),
            (&mut self.failing_calls, other.failing_calls),
            (&mut self.wrong, other.wrong),
            (&mut self.direct_hits, other.direct_hits),
            (&mut self.sampled, other.sampled),
            (&mut self.step_hits, other.step_hits),
            (&mut self.step_misses, other.step_misses),
            (&mut self.built, other.built),
            (&mut self.limit_warnings, other.limit_warnings),
        ] {
            *ours += theirs;
        }
        for (ours, theirs) in [
            (&mut self.bypassed, other.bypassed),
            (&mut self.unstored, other.unstored),
            (&mut self.shapes, other.shapes),
        ] {
            for (what, count) in theirs {
                *ours.entry(what).or_default() += count;
            }
        }
        if self.first_wrong.is_none() {
            self.first_wrong = other.first_wrong;
        }
        self.saved.extend(other.saved);
    }

    /// The figures as JSON.
    ///
    /// # Errors
    /// The figures cannot be encoded, which does not happen.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Prints the figures.
    pub fn print(&self) {
        println!(
            "{} histories, {} changes, {} calls ({} failing with nvcc), {} wrong",
            self.histories, self.changes, self.calls, self.failing_calls, self.wrong
        );
        println!(
            "{} direct hits, {} built; steps of {} histories: {} hits, {} misses",
            self.direct_hits, self.built, self.sampled, self.step_hits, self.step_misses
        );
        if self.limit_warnings > 0 {
            println!(
                "{} calls with a warning about a limit of the shell",
                self.limit_warnings
            );
        }
        for (what, counts) in [
            ("bypassed", &self.bypassed),
            ("not stored", &self.unstored),
            ("shape of a failure", &self.shapes),
        ] {
            for (reason, count) in counts {
                println!("{what}: {count} {reason}");
            }
        }
    }
}
