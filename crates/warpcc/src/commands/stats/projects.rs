//! Hits of each project, from the records of calls. A project is the folder in which its builds ran.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warpcc_report::History;
use warpcc_report::record::{CallOutcome, InvocationRecord, TaskEnd};

use super::figures::Project;

/// Every project, the one with the most calls first; empty without records.
pub fn projects(history: &History) -> Vec<Project> {
    let mut builds = BTreeMap::new();
    // Records that cannot be read are left out.
    drop(history.visit(|call| add(&mut builds, &call)));
    by_folder(builds)
}

/// Projects by their build's id.
type Builds = BTreeMap<String, Project>;

fn add(builds: &mut Builds, call: &InvocationRecord) {
    if call.outcome == CallOutcome::Passed {
        return;
    }
    let build = builds.entry(call.build.clone()).or_insert_with(|| Project {
        folder: PathBuf::from(&call.directory),
        ..Project::default()
    });
    // make runs compilers in several folders. The project is their common parent.
    build.folder = shared(&build.folder, Path::new(&call.directory));
    build.calls += 1;
    build.direct_hits += u64::from(call.outcome == CallOutcome::DirectHit);
    let hits = call.tasks.iter().filter(|task| task.state == TaskEnd::Hit);
    build.saved = hits.fold(build.saved.saturating_add(call.saved), |sum, task| {
        sum.saturating_add(task.saved)
    });
}

fn by_folder(builds: Builds) -> Vec<Project> {
    let mut folders: BTreeMap<PathBuf, Project> = BTreeMap::new();
    for build in builds.into_values() {
        let known = folders.entry(build.folder.clone()).or_default();
        known.folder = build.folder;
        known.calls += build.calls;
        known.direct_hits += build.direct_hits;
        known.saved = known.saved.saturating_add(build.saved);
    }
    let mut all: Vec<Project> = folders.into_values().collect();
    all.sort_by_key(|project| std::cmp::Reverse(project.calls));
    all
}

fn shared(one: &Path, other: &Path) -> PathBuf {
    one.components()
        .zip(other.components())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a)
        .collect()
}

/// The processor time of the steps that ran, as counted; `None` where steps ran before the time was counted.
pub fn spent(counters: &BTreeMap<String, u64>) -> Option<Duration> {
    let micros = counters.get("spent.micros").copied();
    let is_miss = |name: &str| name.starts_with("steps.") && name.ends_with(".misses");
    let ran = counters.keys().any(|name| is_miss(name));
    let micros = micros.or((!ran).then_some(0));
    micros.map(Duration::from_micros)
}

/// The time that hits saved, as counted.
pub fn saved(counters: &BTreeMap<String, u64>) -> Duration {
    Duration::from_micros(counters.get("saved.micros").copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_what_the_calls_of_a_build_have_in_common() {
        let call = |build: &str, directory: &str, outcome: CallOutcome| InvocationRecord {
            build: build.to_owned(),
            directory: directory.to_owned(),
            saved: Duration::from_secs(u64::from(outcome == CallOutcome::DirectHit)),
            outcome,
            ..InvocationRecord::default()
        };
        let mut builds = Builds::new();
        for call in [
            call("make-1", "/p/src/a", CallOutcome::Built),
            call("make-1", "/p/src/b", CallOutcome::DirectHit),
            call("make-2", "/p/src", CallOutcome::DirectHit),
            call("ninja-3", "/q/build", CallOutcome::Failed { code: 1 }),
            call("ninja-3", "/q/build", CallOutcome::Passed),
        ] {
            add(&mut builds, &call);
        }
        let found: Vec<_> = by_folder(builds)
            .into_iter()
            .map(|p| {
                (
                    p.folder.display().to_string(),
                    p.calls,
                    p.direct_hits,
                    p.saved.as_secs(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("/p/src".to_owned(), 3, 2, 2),
                ("/q/build".to_owned(), 1, 0, 0)
            ]
        );
    }
}
