//! Records each call: counters for `warpcc stats`, a note for `warpcc why`, a record for `warpcc report`.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::{Difference, DiskStore, KeyParts};
use warpcc_engine::{StepOutcome as TaskOutcome, WaitedFor};
use warpcc_plan::{FileKind, Tool};
use warpcc_report::record::{
    Budget, CallOutcome, Headers, InvocationRecord, KeyPartChange, Task, TaskEnd, Wait,
};
use warpcc_report::{History, HistoryLimits};

use crate::build::Built;
use crate::config::Config;
use crate::direct::NotKept;
use crate::history;
use crate::process_context::ProcessContext;
use crate::request::Request;
use crate::resources::Lineage;

/// The folder of the cache that holds the records.
const RECORDS: &str = "builds-v1";

/// The counter of calls that `base_dir = "auto"` would have answered.
pub const WOULD_SHARE: &str = "base_dir.would_share";

/// The records of all builds that this cache has seen.
pub fn records(store: &DiskStore) -> History {
    History::new(store.root().join(RECORDS), HistoryLimits::default())
        .with_mode(store.access().file_mode())
}

/// One call, from its start.
pub struct CallRecorder<'a> {
    /// The cache, if there is one.
    pub store: Option<&'a DiskStore>,
    /// The settings.
    pub config: &'a Config,
    /// The build that the call belongs to.
    pub lineage: &'a Lineage,
    /// When the call began.
    pub started: SystemTime,
    /// The command line, the compiler first.
    pub args: Vec<String>,
    /// The working directory.
    pub directory: String,
}

impl<'a> CallRecorder<'a> {
    /// A recorder for the call that `around` describes.
    pub fn new(
        compiler: &Path,
        args: &[OsString],
        around: &ProcessContext,
        store: Option<&'a DiskStore>,
        config: &'a Config,
        lineage: &'a Lineage,
    ) -> Self {
        let words = args.iter().map(|arg| arg.to_string_lossy().into_owned());
        Self {
            store,
            config,
            lineage,
            started: around.started,
            args: std::iter::once(compiler.display().to_string())
                .chain(words)
                .collect(),
            directory: around.directory.display().to_string(),
        }
    }

    /// Records a direct hit. Making the result had cost `micros` microseconds of processor time.
    pub fn direct_hit(&self, request: &Request, micros: u64) {
        self.count(&[
            ("invocations.total", 1),
            ("invocations.direct_hits", 1),
            ("saved.micros", micros),
        ]);
        self.leave(InvocationRecord {
            outcome: CallOutcome::DirectHit,
            sources: request.invocation.inputs.clone(),
            saved: Duration::from_micros(micros),
            ..InvocationRecord::default()
        });
    }

    /// Records a bypassed call that has nothing to cache.
    pub fn passed(&self) {
        self.count(&[("invocations.total", 1), ("invocations.passed", 1)]);
        self.leave(InvocationRecord {
            outcome: CallOutcome::Passed,
            ..InvocationRecord::default()
        });
    }

    /// Records a call whose command line nvcc refuses.
    pub fn refused(&self) {
        self.count(&[("invocations.total", 1), ("invocations.failed", 1)]);
        self.leave(InvocationRecord {
            outcome: CallOutcome::Failed { code: 1 },
            ..InvocationRecord::default()
        });
    }

    /// Records a bypassed call that warpcc does not support.
    pub fn fallback(&self, reason: &str) {
        let counter = format!("fallback_reasons.{reason}");
        self.count(&[
            ("invocations.total", 1),
            ("invocations.fallbacks", 1),
            (&counter, 1),
        ]);
        self.leave(InvocationRecord {
            outcome: CallOutcome::Fallback {
                reason: reason.to_owned(),
            },
            ..InvocationRecord::default()
        });
    }

    /// Records a call that was built, with success or not. `difference` is the file that kept it from being a direct hit.
    pub fn built(
        &self,
        request: &Request,
        listing: &KeyParts,
        built: &Built,
        difference: Option<&Difference>,
    ) {
        let mut counts = step_counts(built);
        counts.push(("invocations.total".to_owned(), 1));
        let how = if built.code == 0 { "built" } else { "failed" };
        counts.push((format!("invocations.{how}"), 1));
        if let Some(why) = built.not_stored.as_ref().filter(|_| built.code == 0) {
            counts.push((format!("not_direct.{}", kind_of(why)), 1));
            if let NotKept::Store(_) = why {
                crate::log::warn(&format!(
                    "built, but not kept: {why} (`warpcc config` shows where the cache is)"
                ));
            }
        }
        if built.code == 0
            && difference.is_none()
            && let Some(store) = self.store.filter(|store| !store.options().readonly)
            && history::was_built_elsewhere(store, request)
        {
            counts.push((WOULD_SHARE.to_owned(), 1));
        }
        let counts: Vec<(&str, u64)> = counts.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        self.count(&counts);
        let Some(store) = self.store else { return };
        let missed = missed(store, request, listing, difference);
        if !store.options().readonly {
            history::remember(store, request, listing);
        }
        self.leave(InvocationRecord {
            outcome: match built.code {
                0 => CallOutcome::Built,
                code => CallOutcome::Failed { code },
            },
            sources: request.invocation.inputs.clone(),
            missed,
            not_kept: built
                .not_stored
                .as_ref()
                .filter(|_| built.code == 0)
                .map(kept_short),
            tasks: tasks(built, self.started),
            headers: Headers::from_read(built.headers.iter().cloned()),
            ..InvocationRecord::default()
        });
    }

    /// Warns of a problem that concerns every call of a build, in the first such call only.
    pub fn warn_once(&self, text: &str) {
        let told = |store: &DiskStore| history::was_told(store, &self.lineage.build.id, text);
        if !self.store.is_some_and(told) {
            crate::log::warn(text);
        }
    }

    fn count(&self, counts: &[(&str, u64)]) {
        if let Some(store) = self.store {
            store.count(counts);
        }
    }

    /// Completes the record and appends it. Failures are ignored: without the record, a report only knows less.
    fn leave(&self, record: InvocationRecord) {
        let Some(store) = self.store.filter(|store| !store.options().readonly) else {
            return;
        };
        let since = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
        let wall = since(self.started, SystemTime::now());
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot = Duration::try_from(boot).unwrap_or_default();
        // Asking the machine costs as much as a quarter of an answer from the cache.
        let budget = (!record.tasks.is_empty()).then(|| {
            let limits = self.config.limits();
            Budget {
                slots: limits.slots,
                memory_kib: limits.memory_kib,
            }
        });
        let record = InvocationRecord {
            id: self.lineage.call,
            build: self.lineage.build.id.clone(),
            driver: self.lineage.build.driver.clone(),
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            started_unix_ns: nanos(since(UNIX_EPOCH, self.started)),
            since_boot_ns: nanos(boot.saturating_sub(wall)),
            wall,
            args: self.args.clone(),
            directory: self.directory.clone(),
            budget: budget.unwrap_or_default(),
            ..record
        };
        drop(records(store).append(&self.lineage.build, record));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The changes that kept the call from being a direct hit.
fn missed(
    store: &DiskStore,
    request: &Request,
    listing: &KeyParts,
    difference: Option<&Difference>,
) -> Vec<KeyPartChange> {
    if let Some(difference) = difference {
        let path = difference.path();
        let source = request
            .invocation
            .inputs
            .iter()
            .any(|i| request.absolute(i) == request.directory.join(path));
        let gone = |there: bool| there.then(|| "there".to_owned());
        if let Difference::VariableChanged { name } = difference {
            return vec![KeyPartChange {
                kind: "variable".to_owned(),
                name: name.clone(),
                old: None,
                new: None,
            }];
        }
        let (old, new) = match difference {
            Difference::FileChanged { .. } => (Some("old".to_owned()), Some("new".to_owned())),
            Difference::FileMissing { .. } => (gone(true), None),
            Difference::FileAppeared { .. } | Difference::VariableChanged { .. } => {
                (None, gone(true))
            }
        };
        return vec![KeyPartChange {
            kind: if source { "source" } else { "header" }.to_owned(),
            name: path.display().to_string(),
            old,
            new,
        }];
    }
    let Some(earlier) = history::recall(store, request) else {
        return Vec::new();
    };
    let text = |value: Option<Vec<u8>>| value.map(|v| String::from_utf8_lossy(&v).into_owned());
    KeyParts::changes(&earlier, listing)
        .into_iter()
        .map(|change| {
            let (kind, name) = change
                .name
                .split_once(' ')
                .unwrap_or((change.name.as_str(), ""));
            KeyPartChange {
                kind: kind.to_owned(),
                name: name.to_owned(),
                old: text(change.old),
                new: text(change.new),
            }
        })
        .collect()
}

/// Waits shorter than this are the price of asking.
const WORTH_TELLING: Duration = Duration::from_millis(2);

fn tasks(built: &Built, called: SystemTime) -> Vec<Task> {
    let graph = &built.graph;
    // A task's times count from the start of the call, the engine's from its own.
    let offset = built.run.began.duration_since(called).unwrap_or_default();
    let task = |task: &warpcc_engine::Finished| {
        let step = &graph.steps[task.step];
        let size = |id: &warpcc_plan::FileId| {
            let files = built.run.tasks.iter().flat_map(|t| &t.files);
            let mut of_it = files.filter(|(file, _)| *file == id.0 as usize);
            of_it.find_map(|(_, size)| *size).unwrap_or(0)
        };
        // Also held up by this call's own limit, before the machine was asked.
        let needs = graph.needs(task.step).iter();
        let ready = needs.filter_map(|n| built.run.tasks.get(*n));
        let ready = ready.map(|needed| needed.finished).max();
        let queued = offset + ready.unwrap_or_default().min(task.started);
        let started = offset + task.started + task.waited;
        Task {
            tool: step.tool.name().to_owned(),
            architecture: step.arch.clone(),
            label: step
                .writes
                .first()
                .map_or(String::new(), |id| graph.file(*id).name().to_owned()),
            state: match task.outcome {
                TaskOutcome::Ran => TaskEnd::Ran,
                TaskOutcome::Hit => TaskEnd::Hit,
                TaskOutcome::Skipped => TaskEnd::Skipped,
                TaskOutcome::Failed(code) => TaskEnd::Failed(code),
            },
            queued,
            started,
            finished: offset + task.finished,
            user: task.user,
            system: task.system,
            peak_kib: task.peak_kib,
            waited_for: (started.saturating_sub(queued) > WORTH_TELLING).then_some(
                match task.waited_for {
                    WaitedFor::Slot => Wait::Cpu,
                    WaitedFor::Memory => Wait::Memory,
                    WaitedFor::Token => Wait::Token,
                },
            ),
            evicted: task.retries,
            slot: None,
            input_bytes: step
                .reads
                .iter()
                .filter(|id| graph.file(**id).kind != FileKind::External)
                .map(size)
                .sum(),
            output_bytes: step.writes.iter().map(size).sum(),
            not_stored: task.not_stored.clone(),
            needs: graph
                .needs(task.step)
                .iter()
                .filter_map(|n| u32::try_from(*n).ok())
                .collect(),
            saved: task.saved,
        }
    };
    built.run.tasks.iter().map(task).collect()
}

/// A reason as a record has it: with the path, on one line of sensible length.
fn kept_short(why: &NotKept) -> String {
    why.to_string().chars().take(512).collect()
}

/// A reason without the path in it, to be counted: each name that is counted stays in the cache.
fn kind_of(why: &NotKept) -> String {
    let NotKept::Unfit(why) = why else {
        return "the cache cannot be written".to_owned();
    };
    let known = [
        "changed while it was in use",
        "is gone",
        "appeared meanwhile",
        "not a regular file",
    ];
    if let Some(kind) = known.into_iter().find(|kind| why.contains(kind)) {
        return kind.to_owned();
    }
    let words: Vec<&str> = why.split(' ').collect();
    let is_of_path = |word: &&str| word.contains('/');
    // A path may have spaces in it.
    let Some(first) = words.iter().position(is_of_path) else {
        return why.clone();
    };
    let last = words.iter().rposition(is_of_path).unwrap_or(first);
    let others: Vec<&str> = [&words[..first], &words[last + 1..]].concat();
    match others.is_empty() {
        true => "a file".to_owned(),
        false => others.join(" "),
    }
}

/// Counts for `warpcc stats`: hits and misses per tool, what the hits saved, and what the others took.
fn step_counts(built: &Built) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = Vec::new();
    let mut add = |name: String, count: u64| match counts.iter_mut().find(|(n, _)| *n == name) {
        Some((_, n)) => *n += count,
        None => counts.push((name, count)),
    };
    for task in &built.run.tasks {
        let tool = built.graph.steps[task.step].tool;
        let counted = matches!(
            tool,
            Tool::CudaFe
                | Tool::Cicc
                | Tool::Ptxas
                | Tool::HostCompile
                | Tool::HostAssembly
                | Tool::Nvlink
                | Tool::Fatbinary
        );
        let kind = match task.outcome {
            TaskOutcome::Hit => "hits",
            TaskOutcome::Ran | TaskOutcome::Failed(_) => "misses",
            TaskOutcome::Skipped => continue,
        };
        if task.away {
            add("remote.executed".to_owned(), 1);
        }
        if counted {
            add(format!("steps.{}.{kind}", tool.name()), 1);
        }
        let (name, time) = match task.outcome {
            TaskOutcome::Hit => ("saved.micros", task.saved),
            _ => ("spent.micros", task.user + task.system),
        };
        let micros = u64::try_from(time.as_micros()).unwrap_or(0);
        add(name.to_owned(), micros);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_counted_without_the_path_in_it() {
        for (why, kind) in [
            ("/w/a b/side-1.txt is written too", "is written too"),
            ("/w/a.h is gone", "is gone"),
            (
                "what started /bin/cc could not be watched",
                "what started could not be watched",
            ),
            ("-arch=native", "-arch=native"),
            ("/w/a", "a file"),
        ] {
            assert_eq!(kind_of(&NotKept::Unfit(why.to_owned())), kind, "{why}");
        }
    }
}
