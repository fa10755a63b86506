//! The summary of a build: where its time went, what the cache did, and what would make it faster.
//!
//! Every figure is worked out from [`Build`] here, once, for the page, for JSON and for text. The meaning of each is
//! given at its field, and for users in `docs/report.md`.

use std::time::Duration;

use serde::Serialize;

use crate::build::Build;
use crate::record::{Budget, CallOutcome};

mod costs;
mod critical;
mod hits;
mod load;

pub(crate) use costs::number_of;
pub use costs::{Another, ArchitectureCost, FileCost, HeaderCost, ToolCost};
pub use critical::{Critical, Segment, SegmentCause, SegmentKind};
pub(crate) use hits::reason as miss_reason;
pub use hits::{Fallback, FolderHits, Hits, MissReason, Rate};
pub use load::{Load, Sample, Waited};

/// All figures of a build. Durations are seconds in JSON, with `_s` at the end of their names.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The build's id.
    pub build: String,
    /// The command line of the tool that drove the build, where there was one.
    pub driver: Option<String>,
    /// The machine.
    pub host: String,
    /// When it started, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From the start of the first call to the end of the last.
    #[serde(rename = "wall_s", serialize_with = "crate::seconds::serialize")]
    pub wall: Duration,
    /// Processor time of all tasks that ran, in their own code.
    #[serde(rename = "user_s", serialize_with = "crate::seconds::serialize")]
    pub user: Duration,
    /// Processor time of all tasks that ran, in the system.
    #[serde(rename = "system_s", serialize_with = "crate::seconds::serialize")]
    pub system: Duration,
    /// The processor time that the cached steps took when they ran.
    #[serde(rename = "saved_s", serialize_with = "crate::seconds::serialize")]
    pub saved: Duration,
    /// How the calls ended.
    pub calls: Calls,
    /// The largest budget that any call had.
    pub budget: Budget,
    /// The load of the machine.
    pub load: Load,
    /// The chain that determined when the build ended.
    pub critical: Critical,
    /// Every tool's share, the most expensive first.
    pub tools: Vec<ToolCost>,
    /// Every file's share, the most expensive first.
    pub files: Vec<FileCost>,
    /// The most expensive headers.
    pub headers: Vec<HeaderCost>,
    /// Every architecture's share, the most expensive first.
    pub architectures: Vec<ArchitectureCost>,
    /// The cost of one more architecture.
    pub another: Option<Another>,
    /// The cache's hits and misses.
    pub hits: Hits,
    /// Calls whose clock cannot have been right; their place in time is a guess.
    pub clock_jumps: usize,
}

/// How the calls of a build ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// All of them.
    pub total: usize,
    /// Answered from the cache as a whole.
    pub direct_hits: usize,
    /// Run step by step.
    pub built: usize,
    /// Bypassed, because something was not understood.
    pub fallbacks: usize,
    /// Bypassed, because there was nothing to cache.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
}

impl Summary {
    /// Works out every figure of a build.
    pub fn compute(build: &Build) -> Self {
        let ran = || build.tasks().filter(|(_, _, task)| task.ran());
        let sum = |times: &mut dyn Iterator<Item = Duration>| {
            times.fold(Duration::ZERO, Duration::saturating_add)
        };
        let load = load::measure(build);
        let architectures = costs::architectures(build);
        Self {
            build: build.id.clone(),
            driver: build.driver.clone(),
            host: build.host.clone(),
            started_unix_ns: build.started_unix_ns,
            wall: build.wall,
            user: sum(&mut ran().map(|(_, _, task)| task.user)),
            system: sum(&mut ran().map(|(_, _, task)| task.system)),
            saved: sum(&mut build.calls.iter().map(hits::saved)),
            calls: calls(build),
            budget: build.budget,
            critical: critical::find_path(build),
            tools: costs::tools(build),
            files: costs::files(build),
            headers: costs::headers(build),
            another: costs::another(build, load.mean_running),
            architectures,
            hits: hits::count(build),
            load,
            clock_jumps: build.clock_jumps,
        }
    }

    /// Processor time altogether.
    pub fn cpu(&self) -> Duration {
        self.user.saturating_add(self.system)
    }
}

fn calls(build: &Build) -> Calls {
    let mut calls = Calls {
        total: build.calls.len(),
        ..Calls::default()
    };
    for call in &build.calls {
        *match call.record.outcome {
            CallOutcome::DirectHit => &mut calls.direct_hits,
            CallOutcome::Built => &mut calls.built,
            CallOutcome::Fallback { .. } => &mut calls.fallbacks,
            CallOutcome::Passed => &mut calls.passed,
            CallOutcome::Failed { .. } => &mut calls.failed,
        } += 1;
    }
    calls
}
