//! What a build shows of its commands' words: in nvcc's order, once, and nothing that nvcc will say itself.

use warpcc_engine::Finished;
use warpcc_plan::TaskGraph;

use crate::doubt::Doubt;
use crate::report::progress::Progress;
use crate::{direct, standard_streams};

/// The words of a call, and how far they were shown.
pub(super) struct Display<'a> {
    progress: Option<&'a Progress>,
    /// Nothing is shown before the end: with `-t`, nvcc shows more than the first failure, and where a race decides
    /// what, it is asked itself.
    holds_back: bool,
    /// What nvcc's dry run said.
    first: Vec<u8>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// How many bytes of each are on the screen.
    shown: (usize, usize),
    /// Whether a failure may not be nvcc's.
    pub(super) doubt: Doubt,
    is_one: bool,
    is_mixed: bool,
}

impl<'a> Display<'a> {
    /// For a call whose dry run said `messages`.
    pub(super) fn new(
        messages: &[String],
        holds_back: bool,
        progress: Option<&'a Progress>,
    ) -> Self {
        let lines = messages.iter().flat_map(|line| [line.as_bytes(), b"\n"]);
        let first: Vec<u8> = lines.flatten().copied().collect();
        Self {
            progress,
            holds_back,
            stdout: Vec::new(),
            stderr: first.clone(),
            first,
            shown: (0, 0),
            doubt: Doubt::default(),
            is_one: standard_streams::are_one(),
            is_mixed: false,
        }
    }

    /// A command has ended.
    pub(super) fn take(&mut self, graph: &TaskGraph, finished: &Finished) {
        // In which order a tool says two things, it alone knows.
        self.is_mixed |= self.is_one && !finished.stdout.is_empty() && !finished.stderr.is_empty();
        if self.doubt.concerns(graph, finished) || self.is_mixed {
            return;
        }
        self.stdout.extend_from_slice(&finished.stdout);
        self.stderr.extend_from_slice(&finished.stderr);
        let silent = finished.stdout.is_empty() && finished.stderr.is_empty();
        if self.holds_back || silent {
            return;
        }
        match self.progress {
            Some(progress) => progress.aside(|| self.emit()),
            None => self.emit(),
        }
        let (out, err) = self.shown;
        self.shown = (out.max(self.stdout.len()), err.max(self.stderr.len()));
    }

    /// Shows what was not shown yet. After a second start, what was shown by the first is not shown again.
    fn emit(&self) {
        direct::emit(
            self.stdout.get(self.shown.0..).unwrap_or_default(),
            self.stderr.get(self.shown.1..).unwrap_or_default(),
        );
    }

    /// The commands run once more from the first.
    pub(super) fn begin_again(&mut self) {
        self.stdout.clear();
        self.stderr.clone_from(&self.first);
        self.doubt.begin_again();
    }

    /// Whether anything is on the screen.
    pub(super) fn has_shown(&self) -> bool {
        self.shown != (0, 0)
    }

    /// Whether a command wrote to both streams, which are one.
    pub(super) fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// Shows all, where nothing was shown on the way.
    pub(super) fn finish(&self) {
        if !self.has_shown() {
            direct::emit(&self.stdout, &self.stderr);
        }
    }

    /// Standard output and standard error of the call.
    pub(super) fn streams(&self) -> (&[u8], &[u8]) {
        (&self.stdout, &self.stderr)
    }
}
