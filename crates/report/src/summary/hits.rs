//! Sums up cache hits, and the reasons for misses.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::build::{Build, BuildCall};
use crate::record::{CallOutcome, KeyPartChange, TaskEnd};

/// Hits and misses of a build.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hits {
    /// Calls that were answered as a whole, of those that could have been.
    pub calls: Rate,
    /// Tasks that came from the cache, of all that were looked for one by one.
    pub tasks: Rate,
    /// The same by the first folder below the folder that all sources share.
    pub folders: Vec<FolderHits>,
    /// Why calls were not answered as a whole, the most frequent reason first.
    pub misses: Vec<MissReason>,
    /// The reasons why calls were bypassed.
    pub fallbacks: Vec<Fallback>,
    /// Why results were not stored, and how often.
    pub not_stored: BTreeMap<String, usize>,
}

/// A number of hits, and the number of look-ups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Found.
    pub hits: usize,
    /// Looked for.
    pub of: usize,
}

/// Hits of one folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FolderHits {
    /// The folder; `.` is the shared one itself.
    pub folder: String,
    /// Calls that were answered as a whole.
    pub calls: Rate,
    /// Tasks that came from the cache.
    pub tasks: Rate,
    /// The processor time that the hits took when they ran.
    #[serde(rename = "saved_s", serialize_with = "crate::seconds::serialize")]
    pub saved: Duration,
    /// The processor time of the tasks that ran.
    #[serde(rename = "cpu_s", serialize_with = "crate::seconds::serialize")]
    pub cpu: Duration,
}

/// One reason for misses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissReason {
    /// The kind of part that differs from the cache's; `new` where the cache has no entry.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Calls for which this was the first reason of the miss. Each call counts for one reason.
    pub calls: usize,
    /// Processor time that those calls spent.
    #[serde(rename = "cpu_s", serialize_with = "crate::seconds::serialize")]
    pub cpu: Duration,
    /// The value that the cache remembers for one of these calls.
    pub old: Option<String>,
    /// The value now, for that call.
    pub new: Option<String>,
    /// The file of that call.
    pub example: String,
}

/// One reason why calls were bypassed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fallback {
    /// The option or text that was not understood.
    pub reason: String,
    /// Calls. Their time is unknown: warpcc had become nvcc.
    pub calls: usize,
}

impl Rate {
    fn add(&mut self, hit: bool) {
        self.of += 1;
        self.hits += usize::from(hit);
    }
}

pub(super) fn count(build: &Build) -> Hits {
    let mut hits = Hits::default();
    let mut folders: BTreeMap<&str, FolderHits> = BTreeMap::new();
    let mut misses: BTreeMap<(&str, &str), MissReason> = BTreeMap::new();
    let mut fallbacks: BTreeMap<&str, Fallback> = BTreeMap::new();
    for call in &build.calls {
        let folder = folders.entry(&call.folder).or_default();
        folder.saved = folder.saved.saturating_add(saved(call));
        folder.cpu = folder.cpu.saturating_add(cpu(call));
        match &call.record.outcome {
            CallOutcome::DirectHit | CallOutcome::Built | CallOutcome::Failed { .. } => {
                let hit = call.record.outcome == CallOutcome::DirectHit;
                hits.calls.add(hit);
                folder.calls.add(hit);
                if !hit {
                    add_miss(&mut misses, call);
                }
            }
            CallOutcome::Fallback { reason } => {
                let row = fallbacks.entry(reason).or_insert_with(|| Fallback {
                    reason: reason.clone(),
                    calls: 0,
                });
                row.calls += 1;
            }
            CallOutcome::Passed => {}
        }
        for task in &call.record.tasks {
            if task.tool != crate::build::PLAIN && task.state != TaskEnd::Skipped {
                hits.tasks.add(task.state == TaskEnd::Hit);
                folder.tasks.add(task.state == TaskEnd::Hit);
            }
            if let Some(reason) = &task.not_stored {
                *hits.not_stored.entry(reason.clone()).or_default() += 1;
            }
        }
    }
    hits.folders = folders
        .into_iter()
        .map(|(name, folder)| FolderHits {
            folder: name.to_owned(),
            ..folder
        })
        .collect();
    hits.misses = misses.into_values().collect();
    hits.misses
        .sort_by(|a, b| (b.calls, b.cpu, &a.name).cmp(&(a.calls, a.cpu, &b.name)));
    hits.fallbacks = fallbacks.into_values().collect();
    hits.fallbacks
        .sort_by(|a, b| (b.calls, &a.reason).cmp(&(a.calls, &b.reason)));
    hits
}

/// The reason that a miss is counted under: the first change, or that there was nothing close.
pub(crate) fn reason(call: &BuildCall) -> Option<(&str, &str)> {
    match (&call.record.outcome, call.record.missed.first()) {
        (CallOutcome::Built | CallOutcome::Failed { .. }, Some(change)) => {
            Some((&change.kind, name(change)))
        }
        (CallOutcome::Built | CallOutcome::Failed { .. }, None) => Some(("new", "")),
        _ => None,
    }
}

/// The name of the part that differs. An option has none, so its first word stands for it: its value may differ from call to call.
fn name(change: &KeyPartChange) -> &str {
    let value = change.new.as_ref().or(change.old.as_ref());
    match (change.name.as_str(), value) {
        ("", Some(value)) => value.split(' ').next().unwrap_or_default(),
        (name, _) => name,
    }
}

fn add_miss<'a>(misses: &mut BTreeMap<(&'a str, &'a str), MissReason>, call: &'a BuildCall) {
    let Some((kind, name)) = reason(call) else {
        return;
    };
    let row = misses.entry((kind, name)).or_insert_with(|| {
        let change: Option<&KeyPartChange> = call.record.missed.first();
        MissReason {
            kind: kind.to_owned(),
            name: name.to_owned(),
            calls: 0,
            cpu: Duration::ZERO,
            old: change.and_then(|change| change.old.clone()),
            new: change.and_then(|change| change.new.clone()),
            example: call.file.clone(),
        }
    });
    row.calls += 1;
    row.cpu = row.cpu.saturating_add(cpu(call));
}

fn cpu(call: &BuildCall) -> Duration {
    let ran = call.record.tasks.iter().filter(|task| task.ran());
    ran.map(crate::record::Task::cpu)
        .fold(Duration::ZERO, Duration::saturating_add)
}

/// The processor time that the cache saved a call.
pub(super) fn saved(call: &crate::build::BuildCall) -> Duration {
    let hits = call
        .record
        .tasks
        .iter()
        .filter(|task| task.state == crate::record::TaskEnd::Hit);
    let steps = hits.map(|task| task.saved);
    steps.fold(call.record.saved, Duration::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{InvocationRecord, Task};

    fn call(source: &str, outcome: CallOutcome, missed: &[(&str, &str)]) -> InvocationRecord {
        InvocationRecord {
            directory: "/p".into(),
            sources: vec![source.into()],
            outcome,
            missed: missed
                .iter()
                .map(|(kind, name)| KeyPartChange {
                    kind: (*kind).into(),
                    name: (*name).into(),
                    old: None,
                    new: None,
                })
                .collect(),
            ..InvocationRecord::default()
        }
    }

    #[test]
    fn misses_are_counted_by_their_first_reason() {
        let fallback = CallOutcome::Fallback {
            reason: "option --odd".into(),
        };
        let mut stepwise = call("b/z.cu", CallOutcome::Built, &[]);
        stepwise.tasks = vec![
            Task {
                state: TaskEnd::Hit,
                saved: Duration::from_secs(3),
                ..Task::default()
            },
            Task::default(),
        ];
        let build = Build::new(vec![
            call(
                "a/x.cu",
                CallOutcome::Built,
                &[("header", "k.h"), ("option", "-O3")],
            ),
            call(
                "a/y.cu",
                CallOutcome::Failed { code: 1 },
                &[("header", "k.h")],
            ),
            stepwise,
            call("a/w.cu", CallOutcome::DirectHit, &[]),
            call("a/v.cu", fallback, &[]),
            call("a/u.cu", CallOutcome::Passed, &[]),
        ]);
        let hits = count(&build);
        assert_eq!(hits.calls, Rate { hits: 1, of: 4 });
        assert_eq!(hits.tasks, Rate { hits: 1, of: 2 });
        let names: Vec<_> = (hits.misses)
            .iter()
            .map(|miss| (miss.name.as_str(), miss.calls))
            .collect();
        assert_eq!(names, [("k.h", 2), ("", 1)]);
        assert_eq!(hits.fallbacks[0].reason, "option --odd");
        assert_eq!(hits.folders[0].calls, Rate { hits: 1, of: 3 });
        assert_eq!(hits.folders[1].saved, Duration::from_secs(3));
    }

    #[test]
    fn an_option_that_differs_is_named() {
        let option = |old: Option<&str>, new: Option<&str>| {
            let mut one = call("a.cu", CallOutcome::Built, &[("option", "")]);
            one.missed[0].old = old.map(str::to_owned);
            one.missed[0].new = new.map(str::to_owned);
            one
        };
        let build = Build::new(vec![
            option(None, Some("--define-macro A=1")),
            option(Some("--define-macro A=1"), Some("--define-macro A=2")),
            option(Some("--debug"), None),
        ]);
        let hits = count(&build);
        let names = (hits.misses.iter()).map(|miss| (miss.name.as_str(), miss.calls));
        let names: Vec<_> = names.collect();
        assert_eq!(names, [("--define-macro", 2), ("--debug", 1)]);
    }
}
