//! The figures that `warpcc stats` shows, from the counters and the records.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use warpcc_cache::OtherVersion;
use warpcc_rtc::Usage;

use crate::commands::avoided;

/// The steps that are always shown, in the order nvcc runs them.
const TOOLS: [&str; 6] = ["cudafe++", "cicc", "ptxas", "fatbinary", "nvlink", "host"];

/// The counters of the shared caches.
pub(super) const REMOTE: [&str; 15] = [
    "hits",
    "misses",
    "uploads",
    "rate_limited",
    "errors",
    "wrong_bytes",
    "refused",
    "unsigned",
    "foreign",
    "bad_signature",
    "other_version",
    "ignored_entries",
    "bytes_up",
    "bytes_down",
    "executed",
];

/// The counter of misses under keys that only another version's records have.
pub(super) const OTHER_VERSION: &str = "record_other_version";

/// The counters of the cluster, besides the steps that it ran.
pub(super) const EXECUTOR: [&str; 3] = ["errors", "bytes_up", "bytes_down"];

/// The counters, and the size of the cache.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Counters by dotted name: `invocations.total`, `steps.cicc.hits`,
    /// `fallback_reasons.<text>`; an absent one is zero.
    pub counters: BTreeMap<String, u64>,
    /// How much the cache holds.
    pub cache_bytes: u64,
    /// How many entries it holds.
    pub cache_entries: u64,
    /// What of it only other versions of warpcc read.
    pub other_versions: Vec<OtherVersion>,
    /// Processor time saved: the time that the results from the cache took when they were made.
    pub saved: Duration,
    /// Processor time of the steps that ran; `None` where it was not always counted.
    pub spent: Option<Duration>,
    /// Projects, the one with most calls first.
    pub projects: Vec<Project>,
    /// Kernels that programs compile at run time, in the folder of this environment.
    pub kernels: Usage,
}

/// The remembered builds of one folder.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// The folder that all calls of its builds were made in.
    pub folder: PathBuf,
    /// Compilations.
    pub calls: u64,
    /// How many of them were direct hits.
    pub direct_hits: u64,
    /// Processor time saved, as in [`Stats::saved`].
    pub saved: Duration,
}

/// How often one tool's results were found.
pub(super) struct Step<'a> {
    pub(super) tool: &'a str,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl Stats {
    pub(super) fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// The compiler time that was avoided, as a share of the time without a cache.
    pub fn avoided(&self) -> Option<String> {
        avoided::sentence(self.saved, self.spent?, self.count("invocations.fallbacks"))
    }

    /// The steps always shown, then any other that was counted.
    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let counted = self.counters.keys().filter_map(|name| {
            let rest = name.strip_prefix("steps.")?;
            rest.strip_suffix(".hits")
                .or_else(|| rest.strip_suffix(".misses"))
        });
        let mut tools = TOOLS.to_vec();
        for tool in counted {
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        let step = |tool| Step {
            tool,
            hits: self.count(&format!("steps.{tool}.hits")),
            misses: self.count(&format!("steps.{tool}.misses")),
        };
        tools.into_iter().map(step).collect()
    }

    /// The reasons for bypassed calls, the most frequent first.
    pub(super) fn reasons(&self) -> Vec<(&str, u64)> {
        let mut reasons: Vec<_> = self
            .counters
            .iter()
            .filter_map(|(name, count)| Some((name.strip_prefix("fallback_reasons.")?, *count)))
            .collect();
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        reasons
    }
}
