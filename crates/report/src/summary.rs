//! The summary of a build: where its time went, what the cache did, and what would make it faster.
//!
//! Every figure is worked out from [`Build`] here, once, for the page, for JSON and for text. The meaning of each is
//! given at its field, and for users in `docs/report.md`.

use std::time::Duration;

use serde::Serialize;

use crate::build::Build;
use crate::device_trace::DeviceTraces;
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
    /// The share of compiler time that the cache avoided: what its results took when they were made, of that and what the
    /// other tasks took. An upper limit where calls were bypassed, whose time is not known. `None` if nothing is measured.
    pub avoided_share: Option<f64>,
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
    /// The sums of nvcc's own traces, where the caller has added them.
    #[serde(skip)]
    pub device_traces: Option<DeviceTraces>,
    /// Calls whose clock was wrong. Their place in time is a guess.
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
        let user = sum(&mut ran().map(|(_, _, task)| task.user));
        let system = sum(&mut ran().map(|(_, _, task)| task.system));
        let saved = sum(&mut build.calls.iter().map(hits::saved));
        let whole = sum(&mut [saved, user, system].into_iter()).as_secs_f64();
        let load = load::measure(build);
        let architectures = costs::architectures(build);
        Self {
            build: build.id.clone(),
            driver: build.driver.clone(),
            host: build.host.clone(),
            started_unix_ns: build.started_unix_ns,
            wall: build.wall,
            user,
            system,
            saved,
            avoided_share: (whole > 0.0).then(|| saved.as_secs_f64() / whole),
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
            device_traces: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InvocationRecord;
    use crate::record::{Task, TaskEnd};

    fn task(state: TaskEnd, saved: u64, user: u64) -> Task {
        Task {
            state,
            saved: Duration::from_secs(saved),
            user: Duration::from_secs(user),
            ..Task::default()
        }
    }

    #[test]
    fn half_of_the_seconds_avoided_is_a_share_of_one_half() {
        let hit = InvocationRecord {
            outcome: CallOutcome::DirectHit,
            saved: Duration::from_secs(3),
            ..InvocationRecord::default()
        };
        // A miss, of which one step was found.
        let partial = InvocationRecord {
            tasks: vec![task(TaskEnd::Hit, 1, 0), task(TaskEnd::Ran, 0, 4)],
            ..InvocationRecord::default()
        };
        let share =
            |records: Vec<InvocationRecord>| Summary::compute(&Build::new(records)).avoided_share;
        assert_eq!(share(vec![hit.clone(), partial]), Some(0.5));
        assert_eq!(share(vec![hit]), Some(1.0));
        let bypassed = InvocationRecord {
            outcome: CallOutcome::Passed,
            ..InvocationRecord::default()
        };
        assert_eq!(share(vec![bypassed]), None);
    }
}
