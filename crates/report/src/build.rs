//! The records of one build on one timeline: where each call and each task stands, and in which
//! slot.
//!
//! Records come from many processes, and some may be wrong: clocks jump, tasks end before they
//! start, two tasks have one slot. This file corrects that once, so that no report has to.

use std::cmp::Reverse;
use std::time::Duration;

use crate::record::{Budget, CallOutcome, InvocationRecord, Task, TaskEnd};

mod paths;

use paths::Names;

/// The tool's name for a call that was bypassed.
pub const PLAIN: &str = "nvcc";
/// If a call is this far from the others, its clock was a different one.
const ANOTHER_CLOCK_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;

/// One build, ready to be reported.
#[derive(Debug, Clone, Default)]
pub struct Build {
    /// Its id.
    pub id: String,
    /// The command line of the tool that drives the build, where there is one.
    pub driver: Option<String>,
    /// The machine it ran on; several are joined with commas.
    pub host: String,
    /// When the first call started, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From the start of the first call to the end of the last.
    pub wall: Duration,
    /// The largest budget that any call had.
    pub budget: Budget,
    /// The folder that all sources share.
    pub root: String,
    /// The calls, by their start.
    pub calls: Vec<BuildCall>,
    /// The tasks of all calls that were not skipped, by their start.
    pub spans: Vec<Span>,
    /// The number of slots of the timeline.
    pub lanes: u32,
    /// Calls whose clock cannot be right.
    pub clock_jumps: usize,
}

/// A call within its build.
#[derive(Debug, Clone)]
pub struct BuildCall {
    /// The record that it left.
    pub record: InvocationRecord,
    /// Its start, since the build's start.
    pub started: Duration,
    /// Its end, since the build's start.
    pub finished: Duration,
    /// The file that it compiles, below [`Build::root`].
    pub file: String,
    /// The folder of that file: the first one below the root.
    pub folder: String,
}

/// A task within its build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its call, by position in [`Build::calls`].
    pub call: usize,
    /// Its task, by position in the call's record.
    pub task: usize,
    /// Since the build's start.
    pub queued: Duration,
    /// Since the build's start.
    pub started: Duration,
    /// Since the build's start.
    pub finished: Duration,
    /// Its slot; `None` for a cached task, which needs no slot.
    pub lane: Option<u32>,
}

impl Span {
    /// How long it took.
    pub fn elapsed(&self) -> Duration {
        self.finished.saturating_sub(self.started)
    }
}

impl Build {
    /// Puts the records of one build on a timeline. Without records the build is empty.
    pub fn new(records: Vec<InvocationRecord>) -> Self {
        let mut build = Self::default();
        let Some(first) = records.iter().min_by_key(|call| call.started_unix_ns) else {
            return build;
        };
        build.id.clone_from(&first.build);
        build.driver = records.iter().find_map(|call| call.driver.clone());
        build.started_unix_ns = first.started_unix_ns;
        build.host = hosts(&records);
        let starts = build.starts(&records);
        let names = Names::collect(&records);
        build.root.clone_from(&names.root);
        let calls = records.into_iter().zip(starts).zip(names.calls);
        for ((mut record, started), (file, folder)) in calls {
            build.budget.slots = build.budget.slots.max(record.budget.slots);
            build.budget.memory_kib = build.budget.memory_kib.max(record.budget.memory_kib);
            show_plain(&mut record);
            build.calls.push(BuildCall {
                // A task that ended after its call did is believed.
                finished: started + sane(last_end(&record)),
                started,
                record,
                file,
                folder,
            });
        }
        // If two start at the same time, the longer one is the outer one.
        build
            .calls
            .sort_by_key(|call| (call.started, Reverse(call.finished), call.record.id));
        build.wall = build
            .calls
            .iter()
            .map(|call| call.finished)
            .max()
            .unwrap_or_default();
        build.place_tasks();
        build
    }

    /// When each call started, since the first one did.
    fn starts(&mut self, records: &[InvocationRecord]) -> Vec<Duration> {
        let steady = records
            .iter()
            .all(|call| call.since_boot_ns > 0 && call.host == records[0].host);
        let mut starts: Vec<u64> = records
            .iter()
            .map(|call| {
                if steady {
                    call.since_boot_ns
                } else {
                    call.started_unix_ns
                }
            })
            .collect();
        let mut sorted = starts.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        for start in &mut starts {
            // The length of a build is not the distance between two clocks.
            if start.abs_diff(median) > ANOTHER_CLOCK_NS {
                *start = median;
                self.clock_jumps += 1;
            }
        }
        let origin = starts.iter().copied().min().unwrap_or(0);
        starts
            .into_iter()
            .map(|start| Duration::from_nanos(start - origin))
            .collect()
    }

    fn place_tasks(&mut self) {
        for (at, call) in self.calls.iter().enumerate() {
            for (number, task) in call.record.tasks.iter().enumerate() {
                if task.state == TaskEnd::Skipped {
                    continue;
                }
                let started = call.started + sane(task.started);
                let finished = call.started + sane(task.finished);
                self.spans.push(Span {
                    call: at,
                    task: number,
                    queued: (call.started + sane(task.queued)).min(started),
                    started,
                    finished: finished.max(started),
                    lane: None,
                });
            }
        }
        self.spans
            .sort_by_key(|span| (span.started, span.call, span.task));
        self.give_lanes();
    }

    /// The slot that the scheduler gave if it is free, or else the first free one.
    fn give_lanes(&mut self) {
        let mut free_at: Vec<Duration> = Vec::new();
        for at in 0..self.spans.len() {
            let span = self.spans[at];
            let task = &self.calls[span.call].record.tasks[span.task];
            if !task.ran() {
                continue;
            }
            // A number of slots that is larger than any machine's processors is invalid.
            let given = task
                .slot
                .filter(|slot| *slot < 4096)
                .map(|slot| slot as usize);
            let is_free = |lane: usize| free_at.get(lane).is_none_or(|free| *free <= span.started);
            let lane = given
                .filter(|lane| is_free(*lane))
                .or_else(|| (0..free_at.len()).find(|lane| is_free(*lane)))
                .unwrap_or(free_at.len());
            if free_at.len() <= lane {
                free_at.resize(lane + 1, Duration::ZERO);
            }
            free_at[lane] = span.finished;
            self.spans[at].lane = u32::try_from(lane).ok();
        }
        self.lanes = u32::try_from(free_at.len()).unwrap_or(u32::MAX);
    }

    /// The record of a span's task.
    pub fn task(&self, span: &Span) -> &Task {
        &self.calls[span.call].record.tasks[span.task]
    }

    /// All tasks with their records.
    pub fn tasks(&self) -> impl Iterator<Item = (&Span, &BuildCall, &Task)> {
        self.spans
            .iter()
            .map(|span| (span, &self.calls[span.call], self.task(span)))
    }

    /// The build's title: the command that drove it, or else what it compiled.
    pub fn title(&self) -> String {
        match (&self.driver, self.calls.as_slice()) {
            (Some(driver), _) => driver.clone(),
            (None, [only]) => only.file.clone(),
            (None, []) => "empty build".to_owned(),
            (None, _) => self.id.clone(),
        }
    }
}

/// Shows plain nvcc as a single task, because warpcc does not see its steps.
fn show_plain(record: &mut InvocationRecord) {
    let plain = matches!(
        record.outcome,
        CallOutcome::Fallback { .. } | CallOutcome::Passed
    );
    if plain && record.tasks.is_empty() {
        record.tasks.push(Task {
            tool: PLAIN.to_owned(),
            label: "plain nvcc".to_owned(),
            finished: record.wall,
            ..Task::default()
        });
    }
}

fn last_end(record: &InvocationRecord) -> Duration {
    let ends = record.tasks.iter().map(|task| task.finished);
    ends.fold(record.wall, Duration::max)
}

/// No step takes longer than a week. A larger offset comes from a wrong clock.
fn sane(offset: Duration) -> Duration {
    if offset > Duration::from_nanos(ANOTHER_CLOCK_NS) {
        return Duration::ZERO;
    }
    offset
}

fn hosts(records: &[InvocationRecord]) -> String {
    let mut hosts: Vec<&str> = records.iter().map(|call| call.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.retain(|host| !host.is_empty());
    hosts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn call(start_ms: u64, tasks: &[(u64, u64)]) -> InvocationRecord {
        InvocationRecord {
            since_boot_ns: (1000 + start_ms) * 1_000_000,
            started_unix_ns: start_ms,
            wall: ms(tasks.iter().map(|task| task.1).max().unwrap_or(1)),
            tasks: tasks
                .iter()
                .map(|(from, to)| Task {
                    tool: "cicc".into(),
                    started: ms(*from),
                    finished: ms(*to),
                    ..Task::default()
                })
                .collect(),
            ..InvocationRecord::default()
        }
    }

    fn lanes(build: &Build) -> Vec<Option<u32>> {
        build.spans.iter().map(|span| span.lane).collect()
    }

    #[test]
    fn an_empty_build_is_empty() {
        let build = Build::new(Vec::new());
        assert_eq!((build.wall, build.lanes), (Duration::ZERO, 0));
        assert_eq!(build.title(), "empty build");
    }

    #[test]
    fn calls_stand_where_the_steady_clock_says() {
        let mut early = call(0, &[(0, 10)]);
        // The wall clock was set back between the two.
        early.started_unix_ns = 9_999_999_999;
        let build = Build::new(vec![call(500, &[(0, 20)]), early]);
        assert_eq!(build.calls[1].started, ms(500));
        assert_eq!(build.wall, ms(520));
    }

    #[test]
    fn without_a_steady_clock_one_that_jumped_is_put_among_the_others() {
        let mut calls = vec![call(0, &[(0, 10)]); 5];
        for (at, call) in calls.iter_mut().enumerate() {
            call.since_boot_ns = 0;
            call.started_unix_ns = 1_700_000_000_000_000_000 + at as u64 * 1_000_000;
        }
        calls[3].started_unix_ns = 5;
        let build = Build::new(calls);
        assert_eq!(build.clock_jumps, 1);
        assert!(build.wall < ms(100), "{:?}", build.wall);
    }

    #[test]
    fn a_task_that_ends_before_it_starts_takes_no_time() {
        let build = Build::new(vec![call(0, &[(30, 10), (0, 5)])]);
        assert_eq!(build.spans[1].elapsed(), Duration::ZERO);
        let mut broken = call(0, &[(0, 5)]);
        broken.tasks[0].finished = Duration::MAX;
        broken.wall = Duration::MAX;
        assert_eq!(Build::new(vec![broken]).wall, Duration::ZERO);
    }

    #[test]
    fn lanes_never_overlap_and_given_ones_are_kept() {
        let mut first = call(0, &[(0, 10), (0, 10), (10, 20)]);
        first.tasks[0].slot = Some(3);
        first.tasks[1].slot = Some(3);
        first.tasks[2].slot = Some(u32::MAX);
        let build = Build::new(vec![first]);
        assert_eq!(lanes(&build), [Some(3), Some(0), Some(0)]);
        assert_eq!(build.lanes, 4);
    }

    #[test]
    fn cached_tasks_need_no_lane() {
        let mut first = call(0, &[(0, 10), (1, 2)]);
        first.tasks[1].state = TaskEnd::Hit;
        assert_eq!(lanes(&Build::new(vec![first])), [Some(0), None]);
    }

    #[test]
    fn plain_nvcc_is_seen() {
        let mut plain = call(0, &[]);
        plain.outcome = CallOutcome::Passed;
        plain.wall = ms(70);
        let build = Build::new(vec![plain]);
        assert_eq!(build.spans.len(), 1);
        assert_eq!(build.spans[0].elapsed(), ms(70));
    }
}
