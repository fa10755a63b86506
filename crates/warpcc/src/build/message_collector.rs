//! Collects the messages of a run's commands, and leaves out those that may not be nvcc's.

use warpcc_engine::Finished;
use warpcc_plan::TaskGraph;

use crate::fetched_results::FetchedResults;
use crate::messages::{Messages, Streams};
use crate::standard_streams;

/// Collects the messages of one build.
pub(super) struct MessageCollector<'a> {
    messages: &'a Messages,
    /// The messages of nvcc's dry run.
    of_dry_run: Streams,
    /// Finds failures that a fetched result may have caused. nvcc would not print the messages of such a step.
    pub(super) fetched_results: FetchedResults,
    /// Whether standard output and standard error are the same file.
    streams_are_one: bool,
    is_mixed: bool,
}

impl<'a> MessageCollector<'a> {
    /// Starts with `lines`, which the dry run printed. They are shown with the other messages: if plain nvcc has to carry
    /// out the call after all, it prints them itself.
    pub(super) fn new(lines: &[String], messages: &'a Messages) -> Self {
        let bytes = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"]);
        let of_dry_run = Streams {
            stdout: Vec::new(),
            stderr: bytes.flatten().copied().collect(),
        };
        messages.restart_with(&of_dry_run);
        Self {
            messages,
            of_dry_run,
            fetched_results: FetchedResults::default(),
            streams_are_one: standard_streams::are_one(),
            is_mixed: false,
        }
    }

    /// Adds the messages of a command that has ended.
    pub(super) fn add(&mut self, graph: &TaskGraph, finished: &Finished) {
        // warpcc reads the two streams separately, so the order of messages on both is lost.
        let prints_to_both = !finished.stdout.is_empty() && !finished.stderr.is_empty();
        self.is_mixed |= self.streams_are_one && prints_to_both;
        if !(self.fetched_results.note_end(graph, finished) || self.is_mixed) {
            self.messages.add(finished);
        }
    }

    /// Forgets the messages of all commands, because the plan runs once more.
    pub(super) fn start_rerun(&mut self) {
        self.messages.restart_with(&self.of_dry_run);
        self.fetched_results.start_rerun();
    }

    /// Whether a command printed to both streams, and both are the same file. Only the tool could have kept the order.
    pub(super) fn is_mixed(&self) -> bool {
        self.is_mixed
    }
}
