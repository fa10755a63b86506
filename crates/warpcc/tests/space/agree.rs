//! Compares warpcc with a fresh nvcc after a change, for every test. It does not know the change.

use super::bytes::{Exactness, differences};
use super::process::{Outcome, Program};
use super::snapshot::Snapshot;
use super::stats::Stats;
use super::streams::StreamRule;
use super::{TestSpace, remove_tree};

/// One command that nvcc and warpcc have both run.
#[derive(Debug)]
pub struct Build {
    /// warpcc's exit code and messages, the same as nvcc's.
    pub outcome: Outcome,
    /// The command's additions to warpcc's counters.
    pub stats: Stats,
    /// The outputs, the same as nvcc's.
    pub outputs: Snapshot,
}

impl Build {
    /// The whole invocation came from the cache.
    pub fn is_direct_hit(&self) -> bool {
        self.stats.count("direct_hits") == 1
    }

    /// Fail unless the whole invocation came from the cache.
    #[track_caller]
    pub fn demand_direct_hit(&self) -> &Self {
        assert!(self.is_direct_hit(), "no direct hit: {:?}", self.stats);
        self
    }

    /// Fail when the whole invocation came from the cache: the test changed something
    /// that changes the output, so equal bytes would then be luck.
    #[track_caller]
    pub fn demand_no_direct_hit(&self) -> &Self {
        assert!(!self.is_direct_hit(), "a direct hit: {:?}", self.stats);
        self
    }

    /// Fail when a tool ran.
    #[track_caller]
    pub fn demand_hits_of(&self, tools: &[&str]) -> &Self {
        for tool in tools {
            assert_eq!(
                self.stats.missed(tool),
                0,
                "{tool} ran again: {:?}",
                self.stats
            );
        }
        self
    }

    /// Fail when any tool ran: every result came from the cache, at some level.
    #[track_caller]
    pub fn demand_no_tool_ran(&self) -> &Self {
        let hit = self.is_direct_hit() || self.stats.all_hits() > 0;
        assert!(
            hit && self.stats.all_misses() == 0,
            "a tool ran: {:?}",
            self.stats
        );
        self.demand_no_fallback()
    }

    /// Fail when plain nvcc was run instead.
    #[track_caller]
    pub fn demand_no_fallback(&self) -> &Self {
        let stats = &self.stats;
        assert_eq!(
            stats.count("fallbacks"),
            0,
            "plain nvcc was run: {:?}",
            stats.reasons
        );
        self
    }
}

impl TestSpace {
    /// Run the line with a fresh nvcc, take its outputs away, run it with warpcc, and
    /// fail unless outputs, streams and exit code are the same.
    #[track_caller]
    pub fn agree(&self, line: &str) -> Build {
        self.agree_as(&Program::Launcher, line, Exactness::Bytes)
    }

    /// The same with another way to start warpcc, or a laxer comparison.
    #[track_caller]
    pub fn agree_as(&self, program: &Program, line: &str, exactness: Exactness) -> Build {
        let (want, wanted) = self.run_reference(line);
        wanted.delete_from(&self.work());
        self.same_as(program, line, exactness, &want, &wanted)
    }

    /// Run the line with warpcc alone, for a state to start from. Only [`Self::agree`] compares with nvcc.
    #[track_caller]
    pub fn build(&self, line: &str) -> Build {
        let (outcome, outputs, stats) = self.observe(&Program::Launcher, &self.words(line));
        assert_eq!(outcome.code, 0, "`{line}`: {}", outcome.stderr_text());
        Build {
            outcome,
            stats,
            outputs,
        }
    }

    /// The same command once more, with nothing changed since `build`: nvcc need not run again.
    #[track_caller]
    pub fn again(&self, line: &str, build: &Build) -> Build {
        build.outputs.delete_from(&self.work());
        let launcher = Program::Launcher;
        self.same_as(
            &launcher,
            line,
            Exactness::Bytes,
            &build.outcome,
            &build.outputs,
        )
    }

    #[track_caller]
    fn same_as(
        &self,
        program: &Program,
        line: &str,
        exactness: Exactness,
        want: &Outcome,
        wanted: &Snapshot,
    ) -> Build {
        let (got, outputs, stats) = self.observe(program, &self.words(line));
        let scratch = self.beside("compare");
        let mut found = differences(wanted, &outputs, exactness, &scratch);
        found.extend(self.stream_rule().differences(want, &got));
        assert!(
            found.is_empty(),
            "`{line}` differs from nvcc:\n{}",
            found.join("\n")
        );
        Build {
            outcome: got,
            stats,
            outputs,
        }
    }

    /// The same comparison, of two runs of warpcc with one of nvcc, where warpcc cannot count
    /// (no usable cache) and may warn about that on lines of its own, which start with `warpcc`.
    #[track_caller]
    pub fn agree_twice_uncounted(&self, line: &str) {
        self.agree_twice_with(line, &self.run_reference(line));
    }

    /// Runs the line with a fresh nvcc. Gives its outcome and its outputs.
    pub fn run_reference(&self, line: &str) -> (Outcome, Snapshot) {
        let before = Snapshot::take(&self.work());
        let want = self.run(&self.reference(), &self.words(line));
        let wanted = Snapshot::take(&self.work()).since(&before);
        (want, wanted)
    }

    /// [`Self::agree_twice_uncounted`] with a reference of the same line, from which nothing has changed since.
    #[track_caller]
    pub fn agree_twice_with(&self, line: &str, (want, wanted): &(Outcome, Snapshot)) {
        let args = self.words(line);
        for _ in 0..2 {
            wanted.delete_from(&self.work());
            let before = Snapshot::take(&self.work());
            let mut got = self.run(&Program::Launcher, &args);
            let outputs = Snapshot::take(&self.work()).since(&before);
            got.stderr = got
                .stderr
                .split_inclusive(|&byte| byte == b'\n')
                .filter(|line| !line.starts_with(b"warpcc"))
                .collect::<Vec<_>>()
                .concat();
            let scratch = self.beside("compare");
            let mut found = differences(wanted, &outputs, Exactness::Bytes, &scratch);
            found.extend(self.stream_rule().differences(want, &got));
            assert!(
                found.is_empty(),
                "`{line}` differs from nvcc:\n{}",
                found.join("\n")
            );
            self.demand_no_leftovers("warpcc");
        }
    }

    /// Run a command of warpcc's alone. Gives its outcome, its outputs and its counters.
    pub fn observe(&self, program: &Program, args: &[String]) -> (Outcome, Snapshot, Stats) {
        let stats = self.stats();
        let before = Snapshot::take(&self.work());
        let outcome = self.run(program, args);
        let outputs = Snapshot::take(&self.work()).since(&before);
        self.demand_no_leftovers("warpcc");
        (outcome, outputs, self.stats().since(&stats))
    }

    /// The reference with an empty keep folder.
    pub fn reference(&self) -> Program {
        let keep = self.beside("keep");
        remove_tree(&keep);
        Program::NvccKeep(keep)
    }

    /// Where the names of intermediate files may stand in diagnostics.
    pub fn stream_rule(&self) -> StreamRule {
        StreamRule {
            folders: vec![self.beside("keep"), self.tmp(), self.cache()],
            ..StreamRule::default()
        }
    }
}
