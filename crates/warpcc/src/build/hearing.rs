//! Holds back the output of a run's commands until it is known whether a failure can be shown as nvcc's.

use warpcc_engine::Finished;
use warpcc_plan::TaskGraph;

use crate::doubt::Doubt;
use crate::messages::{Messages, Streams};
use crate::standard_streams;

/// Listens to the commands of one build.
pub(super) struct Hearing<'a> {
    messages: &'a Messages,
    /// The messages of nvcc's dry run.
    first: Streams,
    /// Tells whether a failure may come from results from elsewhere, and not be nvcc's.
    pub(super) doubt: Doubt,
    streams_are_one: bool,
    is_mixed: bool,
}

impl<'a> Hearing<'a> {
    /// For a call whose dry run printed `lines`. They are held back: plain nvcc may have to do the call after all, and would
    /// print them again.
    pub(super) fn new(lines: &[String], messages: &'a Messages) -> Self {
        let bytes = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"]);
        let first = Streams {
            stdout: Vec::new(),
            stderr: bytes.flatten().copied().collect(),
        };
        messages.begin(&first);
        Self {
            messages,
            first,
            doubt: Doubt::default(),
            streams_are_one: standard_streams::are_one(),
            is_mixed: false,
        }
    }

    /// Takes the output of a command that has ended.
    pub(super) fn take(&mut self, graph: &TaskGraph, finished: &Finished) {
        // Only the tool knows the order of its messages on two streams.
        let says_both = !finished.stdout.is_empty() && !finished.stderr.is_empty();
        self.is_mixed |= self.streams_are_one && says_both;
        if !(self.doubt.concerns(graph, finished) || self.is_mixed) {
            self.messages.add(finished);
        }
    }

    /// Starts over: all commands run once more.
    pub(super) fn begin_again(&mut self) {
        self.messages.begin(&self.first);
        self.doubt.begin_again();
    }

    /// Whether a command wrote to both streams, which are one.
    pub(super) fn is_mixed(&self) -> bool {
        self.is_mixed
    }
}
