//! Files besides the outputs that depend on how warpcc runs a plan: files that several steps write, in an order that is nvcc's
//! only if the steps run one at a time, and files whose names are made from one in the scratch folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use warpcc_watch::Observed;

use crate::compiler_cache::is_compiler_cache;
use crate::own_name;
use crate::scene::Scene;

/// How several steps wrote one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedBy {
    /// Each step found it empty: the last one's text remains.
    Overwriting,
    /// A step added to what was there.
    Appending,
}

/// The files that the steps of a run wrote besides its outputs.
#[derive(Debug, Default)]
pub struct SharedFiles {
    /// The steps that wrote each file, and whether each found it empty, or emptied it.
    writers: Mutex<BTreeMap<PathBuf, BTreeMap<usize, bool>>>,
}

impl SharedFiles {
    /// Notes the files that a run of `step` wrote. A compiler cache's own files are the same in any order.
    pub fn note(&self, step: usize, observed: &Observed, scene: &Scene<'_>) {
        let is_caches = |path: &Path| {
            let writer = observed.writers.get(path.as_os_str());
            writer.is_some_and(|program| is_compiler_cache(program))
        };
        let written = observed.written.iter();
        let foreign = written.filter(|(path, _)| !(scene.is_own(path) || is_caches(path)));
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, opened) in foreign {
            let steps = writers.entry(scene.directory.join(path)).or_default();
            steps.insert(step, opened.mode != 0 && opened.size == 0);
        }
    }

    /// A file that is there and that several steps wrote.
    pub fn of_several_steps(&self) -> Option<(PathBuf, SharedBy)> {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_file = |path: &Path| fs::metadata(path).is_ok_and(|found| found.is_file());
        let mut shared = writers.iter().filter(|(_, steps)| steps.len() > 1);
        let (path, steps) = shared.find(|(path, _)| is_file(path))?;
        let by = match steps.values().all(|&was_empty| was_empty) {
            true => SharedBy::Overwriting,
            false => SharedBy::Appending,
        };
        Some((path.clone(), by))
    }

    /// Removes the files whose names are made from one in the scratch folder, and the folders that were made for them: gcc's
    /// modules are in `gcm.cache`, below the whole path of their source. No other call has such a name.
    pub fn remove_private_names(&self, scratch: &Path) {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let all_scratch = scratch.parent().and_then(Path::file_name);
        let is_for_it = |folder: &Path| {
            own_name::is_in_name(folder, scratch) || folder.file_name() == all_scratch
        };
        let named = writers.keys();
        for path in named.filter(|path| own_name::is_in_name(path, scratch)) {
            // What cannot be removed stays, as nvcc's own files of random names do.
            _ = fs::remove_file(path);
            let folders = path.ancestors().skip(1);
            for folder in folders.take_while(|folder| is_for_it(folder)) {
                _ = fs::remove_dir(folder);
            }
        }
    }
}
