//! Reads `warpcc stats --json`: the only way a test learns what warpcc did inside.

use super::TestSpace;
use serde_json::Value;
use std::collections::BTreeMap;

/// The tools that `stats` counts.
pub const TOOLS: [&str; 7] = [
    "cudafe++",
    "cicc",
    "nvvm",
    "ptxas",
    "host",
    "nvlink",
    "fatbinary",
];

/// The counters of one cache, or what one command added to them.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// `invocations`: total, direct_hits, built, fallbacks, failed.
    pub invocations: BTreeMap<String, i64>,
    /// Hits of each tool.
    pub hits: BTreeMap<String, i64>,
    /// Misses of each tool.
    pub misses: BTreeMap<String, i64>,
    /// Why plain nvcc was run, and how often.
    pub reasons: BTreeMap<String, i64>,
}

impl Stats {
    /// The counts between two readings.
    pub fn since(&self, before: &Self) -> Self {
        let minus = |a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>| {
            a.iter()
                .map(|(k, v)| (k.clone(), v - b.get(k).copied().unwrap_or(0)))
                .filter(|(_, v)| *v != 0)
                .collect()
        };
        Self {
            invocations: minus(&self.invocations, &before.invocations),
            hits: minus(&self.hits, &before.hits),
            misses: minus(&self.misses, &before.misses),
            reasons: minus(&self.reasons, &before.reasons),
        }
    }

    /// One of the invocation counters.
    pub fn count(&self, name: &str) -> i64 {
        self.invocations.get(name).copied().unwrap_or(0)
    }

    /// Times a tool had to run.
    pub fn missed(&self, tool: &str) -> i64 {
        self.misses.get(tool).copied().unwrap_or(0)
    }

    /// Times a tool's result was there.
    pub fn hit(&self, tool: &str) -> i64 {
        self.hits.get(tool).copied().unwrap_or(0)
    }

    /// Misses of all tools.
    pub fn all_misses(&self) -> i64 {
        self.misses.values().sum()
    }

    /// Hits of all tools.
    pub fn all_hits(&self) -> i64 {
        self.hits.values().sum()
    }
}

impl TestSpace {
    /// The counters of this space's cache now.
    pub fn stats(&self) -> Stats {
        let outcome = self.warpcc_with(&["stats", "--json"]);
        let json: Value = serde_json::from_slice(&outcome.stdout).unwrap_or_else(|e| {
            panic!(
                "`warpcc stats --json` printed no JSON ({e}): {}{}",
                String::from_utf8_lossy(&outcome.stdout),
                outcome.stderr_text()
            )
        });
        let numbers = |value: &Value| -> BTreeMap<String, i64> {
            value
                .as_object()
                .map(|o| {
                    o.iter()
                        .filter_map(|(k, v)| Some((k.clone(), v.as_i64()?)))
                        .collect()
                })
                .unwrap_or_default()
        };
        let per_tool = |field: &str| {
            TOOLS
                .iter()
                .map(|&tool| {
                    let count = json["steps"][tool][field].as_i64().unwrap_or(0);
                    (tool.to_owned(), count)
                })
                .collect()
        };
        Stats {
            invocations: numbers(&json["invocations"]),
            hits: per_tool("hits"),
            misses: per_tool("misses"),
            reasons: numbers(&json["fallback_reasons"]),
        }
    }
}
