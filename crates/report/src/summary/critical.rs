//! The chain that determined when a build ended: its critical path, from end to start.
//!
//! The path covers the build without a gap, so its parts sum up to the wall time. It is walked
//! backwards from the call that ended last:
//!
//! - A task that waited for a slot, for memory or for a token comes after the last task, of any
//!   call, that ended before it started: that end let it start.
//! - Any other task comes after the task that wrote the last of its inputs, or else after the
//!   last task of its call that ended before it started.
//! - The first task of a call comes after the call's own work: the plan and the look-ups.
//! - A call comes after the last call that ended before it began, because the build tool starts
//!   one when another ends. The time between them was spent outside of warpcc.
//!
//! A build can only end earlier if something on this path takes less time or starts earlier.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use crate::build::{Build, Span};
use crate::record::Wait;

/// A shorter wait is not counted as one: it is the time that starting a task takes.
const PROMPT: Duration = Duration::from_millis(2);

/// The path and what it is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Critical {
    /// From the start of the build to its end, without gaps.
    pub segments: Vec<Segment>,
    /// Time in each tool on the path, seconds; `warpcc` for its own work, `outside` for what
    /// happened between calls, `waiting` for slots that stood empty.
    pub by_tool_s: BTreeMap<String, f64>,
}

/// A piece of the path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Segment {
    /// The kind of event.
    pub kind: SegmentKind,
    /// From here, since the build's start.
    #[serde(rename = "from_s", serialize_with = "crate::seconds::serialize")]
    pub from: Duration,
    /// To here.
    #[serde(rename = "to_s", serialize_with = "crate::seconds::serialize")]
    pub to: Duration,
    /// The tool, for a task.
    pub tool: Option<String>,
    /// The architecture, for a task that has one.
    pub architecture: Option<String>,
    /// The file whose call this belongs to.
    pub file: Option<String>,
    /// The reason why it did not begin earlier.
    pub why: SegmentCause,
    /// The task, by position in the build.
    #[serde(skip)]
    pub span: Option<usize>,
    /// The call it belongs to, by position in the build.
    #[serde(skip)]
    pub call: Option<usize>,
}

/// The kind of a segment of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// A task ran, or came from the cache.
    Task,
    /// warpcc's own work: nvcc's dry run, look-ups, outputs put in place, a direct hit.
    Warpcc,
    /// A task could have run and did not. The reason is not known.
    Waiting,
    /// There was no running call for which the next one could have waited.
    Outside,
}

/// Why a piece of the path did not begin earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentCause {
    /// Nothing came before it.
    First,
    /// It needs what came before it.
    Needed,
    /// There was no free slot before.
    Cpu,
    /// There was not enough memory before.
    Memory,
    /// There was no token of the jobserver before.
    Token,
    /// The build tool started it only then.
    Started,
}

/// Walks the path.
pub(super) fn find_path(build: &Build) -> Critical {
    let mut walk = Walk::new(build);
    let last = (0..build.calls.len()).max_by_key(|call| build.calls[*call].finished);
    if let Some(call) = last {
        walk.call(call);
    }
    let mut segments = walk.segments;
    segments.reverse();
    let mut by_tool_s = BTreeMap::new();
    for segment in &segments {
        let name = match segment.kind {
            SegmentKind::Task => segment.tool.as_deref().unwrap_or("other"),
            SegmentKind::Warpcc => "warpcc",
            SegmentKind::Waiting => "waiting",
            SegmentKind::Outside => "outside",
        };
        *by_tool_s.entry(name.to_owned()).or_insert(0.0) +=
            (segment.to - segment.from).as_secs_f64();
    }
    Critical {
        segments,
        by_tool_s,
    }
}

struct Walk<'a> {
    build: &'a Build,
    /// Tasks that took time, by their end.
    ended: Vec<usize>,
    /// Calls by their end.
    calls_ended: Vec<usize>,
    /// The tasks of each call.
    of_call: Vec<Vec<usize>>,
    seen: HashSet<usize>,
    seen_calls: HashSet<usize>,
    /// The end of the time that is not yet covered.
    at: Duration,
    segments: Vec<Segment>,
}

/// Where the path goes on, backwards.
enum Next {
    Task(usize),
    Call(usize),
    Done,
}

impl<'a> Walk<'a> {
    fn new(build: &'a Build) -> Self {
        let spans = &build.spans;
        let took_time = |span: &usize| spans[*span].elapsed() > Duration::ZERO;
        let mut ended: Vec<usize> = (0..spans.len()).filter(took_time).collect();
        ended.sort_by_key(|span| spans[*span].finished);
        let mut calls_ended: Vec<usize> = (0..build.calls.len()).collect();
        calls_ended.sort_by_key(|call| build.calls[*call].finished);
        let mut of_call = vec![Vec::new(); build.calls.len()];
        for span in &ended {
            of_call[spans[*span].call].push(*span);
        }
        Self {
            build,
            ended,
            calls_ended,
            of_call,
            seen: HashSet::new(),
            seen_calls: HashSet::new(),
            at: build.wall,
            segments: Vec::new(),
        }
    }

    fn call(&mut self, call: usize) {
        let mut next = Next::Call(call);
        loop {
            next = match next {
                Next::Call(call) => self.end_of(call),
                Next::Task(span) => self.task(span),
                Next::Done => return,
            };
        }
    }

    /// From the end of a call to its last task, or through it where it has none.
    fn end_of(&mut self, call: usize) -> Next {
        self.seen_calls.insert(call);
        let last = self.of_call[call].last().copied();
        match last.filter(|span| !self.seen.contains(span)) {
            Some(span) => {
                let from = self.build.spans[span].finished;
                self.cover(
                    from,
                    SegmentKind::Warpcc,
                    Some(call),
                    None,
                    SegmentCause::Needed,
                );
                Next::Task(span)
            }
            None => self.start_of(call, SegmentCause::Started),
        }
    }

    fn task(&mut self, at: usize) -> Next {
        self.seen.insert(at);
        let span = self.build.spans[at];
        let task = self.build.task(&span);
        let held_up = span.started.saturating_sub(span.queued) > PROMPT;
        if held_up && let Some(before) = self.released_by(&span) {
            let why = match task.waited_for {
                Some(Wait::Memory) => SegmentCause::Memory,
                Some(Wait::Token) => SegmentCause::Token,
                Some(Wait::Cpu) | None => SegmentCause::Cpu,
            };
            self.cover(
                span.started,
                SegmentKind::Task,
                Some(span.call),
                Some(at),
                why,
            );
            self.cover(
                self.build.spans[before].finished,
                SegmentKind::Waiting,
                None,
                None,
                why,
            );
            return Next::Task(before);
        }
        self.cover(
            span.started,
            SegmentKind::Task,
            Some(span.call),
            Some(at),
            SegmentCause::Needed,
        );
        match self.needed_by(&span) {
            Some(before) => {
                let end = self.build.spans[before].finished;
                self.cover(
                    end,
                    SegmentKind::Warpcc,
                    Some(span.call),
                    None,
                    SegmentCause::Needed,
                );
                Next::Task(before)
            }
            None => self.start_of(span.call, SegmentCause::Started),
        }
    }

    /// The task whose end gave a waiting one its place.
    fn released_by(&self, span: &Span) -> Option<usize> {
        let spans = &self.build.spans;
        let until = self
            .ended
            .partition_point(|one| spans[*one].finished <= span.started);
        let ran = |one: &&usize| spans[**one].lane.is_some() && !self.seen.contains(one);
        let before = self.ended[..until].iter().rev().find(ran).copied()?;
        // It ended before the wait began, so the wait was not for it.
        (spans[before].finished > span.queued).then_some(before)
    }

    /// The task of the same call that wrote what this one reads, or that ended last before it.
    fn needed_by(&self, span: &Span) -> Option<usize> {
        let spans = &self.build.spans;
        let needs = &self.build.task(span).needs;
        let before =
            |one: &&usize| spans[**one].finished <= span.started && !self.seen.contains(one);
        let wanted = |one: &&usize| {
            needs.is_empty() || needs.iter().any(|need| *need as usize == spans[**one].task)
        };
        let own = &self.of_call[span.call];
        own.iter().rev().filter(before).find(wanted).copied()
    }

    /// From a call's first task, or from its end, to its start, and on to the call before.
    fn start_of(&mut self, call: usize, why: SegmentCause) -> Next {
        self.seen_calls.insert(call);
        let started = self.build.calls[call].started;
        self.cover(started, SegmentKind::Warpcc, Some(call), None, why);
        let calls = &self.build.calls;
        let until = self
            .calls_ended
            .partition_point(|one| calls[*one].finished <= self.at);
        let fresh = |one: &&usize| !self.seen_calls.contains(one);
        match self.calls_ended[..until].iter().rev().find(fresh).copied() {
            Some(before) => {
                let end = calls[before].finished;
                self.cover(end, SegmentKind::Outside, None, None, SegmentCause::Started);
                Next::Call(before)
            }
            None => {
                self.cover(
                    Duration::ZERO,
                    SegmentKind::Outside,
                    None,
                    None,
                    SegmentCause::First,
                );
                Next::Done
            }
        }
    }

    /// Covers the time from `from` to the start of the part that is already covered.
    fn cover(
        &mut self,
        from: Duration,
        kind: SegmentKind,
        call: Option<usize>,
        span: Option<usize>,
        why: SegmentCause,
    ) {
        if from >= self.at {
            return;
        }
        let task = span.map(|span| self.build.task(&self.build.spans[span]));
        self.segments.push(Segment {
            kind,
            from,
            to: self.at,
            tool: task.map(|task| task.tool.clone()),
            architecture: task.and_then(|task| task.architecture.clone()),
            file: call.map(|call| self.build.calls[call].file.clone()),
            why,
            span,
            call,
        });
        self.at = from;
    }
}

#[cfg(test)]
#[path = "critical_tests.rs"]
mod tests;
