//! Records each call: counters for `warpcc stats`, the key parts for `warpcc why`, a record for `warpcc report`.

mod counts;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::{Difference, DiskStore, KeyParts};
use warpcc_engine::{StepOutcome as TaskOutcome, WaitedFor};
use warpcc_plan::FileKind;
use warpcc_report::record::{
    Budget, CallOutcome, Headers, InvocationRecord, KeyPartChange, Task, TaskEnd, Wait,
};
use warpcc_report::{History, HistoryLimits};

use crate::build::Built;
use crate::config::Config;
use crate::direct::NotStored;
use crate::history;
use crate::process_context::ProcessContext;
use crate::request::Request;
use crate::resources::CallId;

use self::counts::{counted_reason, step_counts};

/// The folder of the cache that holds the records.
const RECORDS: &str = "builds-v1";

/// The counter of calls that `base_dir = "auto"` would have answered.
pub const WOULD_SHARE: &str = "base_dir.would_share";

/// The records of all builds that this cache has seen.
pub fn records(store: &DiskStore) -> History {
    History::new(store.root().join(RECORDS), HistoryLimits::default())
        .with_mode(store.access().file_mode())
}

/// Records one call.
pub struct CallRecorder<'a> {
    /// The cache, if there is one.
    pub store: Option<&'a DiskStore>,
    /// The settings.
    pub config: &'a Config,
    /// The build that the call belongs to.
    pub call_id: &'a CallId,
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
        context: &ProcessContext,
        store: Option<&'a DiskStore>,
        config: &'a Config,
        call_id: &'a CallId,
    ) -> Self {
        let words = args.iter().map(|arg| arg.to_string_lossy().into_owned());
        Self {
            store,
            config,
            call_id,
            started: context.started,
            args: std::iter::once(compiler.display().to_string())
                .chain(words)
                .collect(),
            directory: context.directory.display().to_string(),
        }
    }

    /// Records a direct hit. Making the result had cost `micros` microseconds of processor time.
    pub fn direct_hit(&self, request: &Request, micros: u64) {
        self.count(&[
            ("invocations.total", 1),
            ("invocations.direct_hits", 1),
            ("saved.micros", micros),
        ]);
        self.append_record(InvocationRecord {
            outcome: CallOutcome::DirectHit,
            sources: request.invocation.inputs.clone(),
            saved: Duration::from_micros(micros),
            ..InvocationRecord::default()
        });
    }

    /// Records a bypassed call that has nothing to cache.
    pub fn passed(&self) {
        self.count(&[("invocations.total", 1), ("invocations.passed", 1)]);
        self.append_record(InvocationRecord {
            outcome: CallOutcome::Passed,
            ..InvocationRecord::default()
        });
    }

    /// Records a call whose command line nvcc refuses.
    pub fn refused(&self) {
        self.count(&[("invocations.total", 1), ("invocations.failed", 1)]);
        self.append_record(InvocationRecord {
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
        self.append_record(InvocationRecord {
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
        key_parts: &KeyParts,
        built: &Built,
        difference: Option<&Difference>,
    ) {
        let mut counts = step_counts(built);
        counts.push(("invocations.total".to_owned(), 1));
        let how = if built.code == 0 { "built" } else { "failed" };
        counts.push((format!("invocations.{how}"), 1));
        if let Some(why) = built.not_stored.as_ref().filter(|_| built.code == 0) {
            counts.push((format!("not_direct.{}", counted_reason(why)), 1));
            if let NotStored::Store(_) = why {
                crate::log::warn(&format!(
                    "built, but not stored: {why} (`warpcc config` shows where the cache is)"
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
        let missed = missed(store, request, key_parts, difference);
        if !store.options().readonly {
            history::remember(store, request, key_parts);
        }
        self.append_record(InvocationRecord {
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
                .map(short_reason),
            tasks: tasks(built, self.started),
            headers: Headers::from_read(built.headers.iter().cloned()),
            ..InvocationRecord::default()
        });
    }

    /// Warns of a problem that every call of a build has. Only the first call of the build prints the warning.
    pub fn warn_once(&self, text: &str) {
        let was_warned =
            |store: &DiskStore| history::was_warned(store, &self.call_id.build.id, text);
        if !self.store.is_some_and(was_warned) {
            crate::log::warn(text);
        }
    }

    fn count(&self, counts: &[(&str, u64)]) {
        if let Some(store) = self.store {
            store.count(counts);
        }
    }

    /// Completes the record and appends it to the history. Failures are ignored: the report then lacks this call.
    fn append_record(&self, record: InvocationRecord) {
        let Some(store) = self.store.filter(|store| !store.options().readonly) else {
            return;
        };
        let since = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
        let wall = since(self.started, SystemTime::now());
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot = Duration::try_from(boot).unwrap_or_default();
        // Finding the limits out takes a quarter of the time of a direct hit, so it is not done for a hit.
        let budget = (!record.tasks.is_empty()).then(|| {
            let limits = self.config.limits();
            Budget {
                slots: limits.slots,
                memory_kib: limits.memory_kib,
            }
        });
        let record = InvocationRecord {
            id: self.call_id.call,
            build: self.call_id.build.id.clone(),
            driver: self.call_id.build.driver.clone(),
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
        drop(records(store).append(&self.call_id.build, record));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The changes that kept the call from being a direct hit.
fn missed(
    store: &DiskStore,
    request: &Request,
    key_parts: &KeyParts,
    difference: Option<&Difference>,
) -> Vec<KeyPartChange> {
    if let Some(difference) = difference {
        let path = difference.path();
        let source = request
            .invocation
            .inputs
            .iter()
            .any(|i| request.absolute(i) == request.directory.join(path));
        let there = || Some("there".to_owned());
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
            Difference::FileMissing { .. } => (there(), None),
            Difference::FileAppeared { .. } | Difference::VariableChanged { .. } => (None, there()),
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
    KeyParts::changes(&earlier, key_parts)
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

/// Shorter waits are not reported: they are the time that asking for a slot takes.
const SHORTEST_WAIT: Duration = Duration::from_millis(2);

fn tasks(built: &Built, called: SystemTime) -> Vec<Task> {
    let graph = &built.graph;
    // In a record, times count from the start of the call. The engine's times count from the start of its run.
    let offset = built.run.began.duration_since(called).unwrap_or_default();
    let task = |task: &warpcc_engine::Finished| {
        let step = &graph.steps[task.step];
        let size = |id: &warpcc_plan::FileId| {
            let files = built.run.tasks.iter().flat_map(|t| &t.files);
            let mut of_it = files.filter(|(file, _)| *file == id.0 as usize);
            of_it.find_map(|(_, size)| *size).unwrap_or(0)
        };
        // The task waits from the moment when all tasks that it needs have ended. It may wait for this call's own limit
        // first, and then for the machine.
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
            waited_for: (started.saturating_sub(queued) > SHORTEST_WAIT).then_some(
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

/// The reason for a record: with the path, and not too long.
fn short_reason(why: &NotStored) -> String {
    why.to_string().chars().take(512).collect()
}
