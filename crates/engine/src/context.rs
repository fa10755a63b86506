//! The state that all tasks of a run share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use warpcc_cache::{Digest, DiskStore, guards};
use warpcc_plan::{TaskGraph, lines};

use crate::artifact::Artifacts;
use crate::options::RunOptions;
use crate::shared_libraries::{Loaded, loaded_by};
use crate::side_files::SideFiles;

/// The state that the functions of a step share: look up, run here, run elsewhere, store.
pub struct RunContext<'a> {
    pub graph: &'a TaskGraph,
    pub options: &'a RunOptions<'a>,
    pub artifacts: &'a Artifacts<'a>,
    pub clock: Instant,
    pub side_files: SideFiles,
    /// Whether a text with other line numbers counts as another text.
    pub lines_count: bool,
    tools: ToolContents,
    loaded: LoadedLibraries,
}

/// The libraries that each program of this run loads; each program is examined once.
type LoadedLibraries = Mutex<BTreeMap<PathBuf, Arc<OnceLock<Option<Loaded>>>>>;

/// The hashes of this run's tools. One thread computes each, even if several ask at once: the first build with an empty
/// cache starts a cicc for every architecture.
#[derive(Default)]
struct ToolContents(Mutex<BTreeMap<PathBuf, Arc<OnceLock<Content>>>>);

/// The BLAKE3 of a file, `None` where it cannot be read.
type Content = Option<[u8; 32]>;

impl ToolContents {
    fn content(&self, store: &DiskStore, path: &Path) -> Content {
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
    ) -> Self {
        Self {
            lines_count: options.lines_count
                || !(lines::never_show(graph) || guards::is_off("lines-in-results")),
            graph,
            options,
            artifacts,
            clock: Instant::now(),
            side_files: SideFiles::new(),
            tools: ToolContents::default(),
            loaded: LoadedLibraries::default(),
        }
    }

    /// The BLAKE3 of a tool, `None` where it cannot be read or there is no cache.
    pub fn tool_content(&self, program: &Path) -> Content {
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
