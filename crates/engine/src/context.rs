//! The state that all tasks of a run share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use warpcc_cache::{Digest, DiskStore, Key, guards};
use warpcc_plan::{TaskGraph, lines};

use crate::announcement::Announcement;
use crate::artifact::Artifacts;
use crate::event::{Finished, StepOutcome};
use crate::known_programs::KnownPrograms;
use crate::options::RunOptions;
use crate::shared_libraries::{Loaded, loaded_by};
use crate::side_files::SideFiles;

/// The state that the functions of a step share: look up, run here, run elsewhere, store.
pub struct RunContext<'a> {
    pub graph: &'a TaskGraph,
    pub options: &'a RunOptions<'a>,
    pub artifacts: &'a Artifacts<'a>,
    /// The file that a step announces before its end, if there is one.
    pub announcement: Option<&'a Announcement>,
    pub clock: Instant,
    pub side_files: SideFiles,
    /// Whether a text with other line numbers counts as another text.
    pub lines_count: bool,
    /// Which programs ask for variables by name only.
    pub known: KnownPrograms<'a>,
    tools: ToolContents,
    loaded: LoadedLibraries,
    made: OwnResults,
}

/// The results of this run that it may find again: a step that began before its assumption was corrected may have read the
/// corrected file already. Its repetition then hits what it stored.
#[derive(Default)]
pub struct OwnResults(Mutex<BTreeMap<usize, (Vec<Key>, Finished)>>);

impl OwnResults {
    /// Notes that `made` was stored under these keys.
    fn note(&self, keys: Vec<Key>, made: &Finished) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(made.step, (keys, made.clone()));
    }

    /// If a hit under these keys is this run's own result, it is counted as a command that ran.
    fn as_made(&self, keys: &[Key], hit: &mut Finished) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = all.get(&hit.step).filter(|(noted, _)| noted == keys);
        if let Some((_, made)) = made {
            hit.outcome = StepOutcome::Ran;
            hit.saved = made.saved;
            hit.user = made.user;
            hit.system = made.system;
            hit.peak_kib = made.peak_kib;
        }
    }
}

/// The libraries that each program of this run loads; each program is examined once.
type LoadedLibraries = Mutex<BTreeMap<PathBuf, Arc<OnceLock<Option<Loaded>>>>>;

/// The hashes of this run's tools. One thread computes each, even if several ask at once: the first build with an empty
/// cache starts a cicc for every architecture.
#[derive(Default)]
struct ToolContents(Mutex<BTreeMap<PathBuf, Arc<OnceLock<ContentHash>>>>);

/// The BLAKE3 of a file, `None` where it cannot be read.
type ContentHash = Option<[u8; 32]>;

impl ToolContents {
    fn content(&self, store: &DiskStore, path: &Path) -> ContentHash {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(path.to_owned()).or_default())
        };
        *cell.get_or_init(|| store.tool_content(path).ok())
    }
}

impl<'a> RunContext<'a> {
    /// The context at the beginning of a run.
    pub fn new(
        graph: &'a TaskGraph,
        options: &'a RunOptions<'a>,
        artifacts: &'a Artifacts<'a>,
        announcement: Option<&'a Announcement>,
    ) -> Self {
        Self {
            lines_count: options.lines_count
                || !(lines::never_show(graph) || guards::is_off("lines-in-results")),
            graph,
            options,
            artifacts,
            announcement,
            clock: Instant::now(),
            side_files: SideFiles::default(),
            known: KnownPrograms::new(options.store),
            tools: ToolContents::default(),
            loaded: LoadedLibraries::default(),
            made: OwnResults::default(),
        }
    }

    /// Notes a result that was just made and stored, if its step may be repeated.
    pub fn note_made(&self, keys: Vec<Key>, made: &Finished) {
        let step = &self.graph.steps[made.step];
        let mut assumed = self.graph.assumed.iter();
        if made.outcome == StepOutcome::Ran && assumed.any(|assumed| assumed.is_used_by(step)) {
            self.made.note(keys, made);
        }
    }

    /// Counts a hit as a command that ran, if this run made the result.
    pub fn count_own_result(&self, keys: &[Key], hit: &mut Finished) {
        self.made.as_made(keys, hit);
    }

    /// The BLAKE3 of a tool, `None` where it cannot be read or there is no cache.
    pub fn tool_content(&self, program: &Path) -> ContentHash {
        self.tools.content(self.options.store?, program)
    }

    /// The libraries that a program loads.
    pub fn loaded(&self, program: &Path) -> Option<Loaded> {
        let cell = {
            let mut known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(program.to_owned()).or_default())
        };
        let options = self.options;
        let ask = || {
            loaded_by(
                program,
                options.environment,
                options.directory,
                options.children,
            )
        };
        cell.get_or_init(ask).clone()
    }

    /// The digest of a file that does not change from run to run.
    pub fn lasting_digest(&self, file: &Path) -> Option<Digest> {
        match self.options.store {
            Some(store) => store.file_digest(file).ok(),
            None => Digest::of_file(file).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_hit_of_the_runs_own_result_is_no_hit() {
        let results = OwnResults::default();
        let keys = [Key([1; 32]), Key([2; 32])];
        let mut made = Finished::new(3, StepOutcome::Ran);
        made.user = Duration::from_secs(1);
        results.note(keys.to_vec(), &made);
        let hit = |step: usize, keys: &[Key]| {
            let mut hit = Finished::new(step, StepOutcome::Hit);
            hit.saved = Duration::from_secs(5);
            results.as_made(keys, &mut hit);
            hit
        };
        assert_eq!(hit(3, &keys), made);
        assert_eq!(hit(3, &keys[..1]).outcome, StepOutcome::Hit);
        assert_eq!(hit(4, &keys).outcome, StepOutcome::Hit);
    }
}
