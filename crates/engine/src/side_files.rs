//! What the commands of a run did to files that are not their outputs: that they changed one, removed an old output, or made
//! one whose name is made from the scratch folder's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpcc_watch::Observed;

use crate::compiler_cache::is_compiler_cache;
use crate::own_name;
use crate::scene::Scene;

/// The paths of each step.
type OfSteps = Mutex<BTreeMap<usize, BTreeSet<PathBuf>>>;

/// The side files of a run.
#[derive(Debug, Default)]
pub struct SideFiles {
    /// Files of the plan that a step removed.
    removed: OfSteps,
    /// Files of the plan that a step looked for in vain.
    missed: OfSteps,
    /// All other files that steps wrote.
    written: Mutex<BTreeSet<PathBuf>>,
    /// A file besides the outputs that a step changed, or would have.
    changed: Mutex<Option<PathBuf>>,
}

impl SideFiles {
    /// Whether a step removed a file of the plan, and the file is gone: an assembler that fails removes its output, and with
    /// nvcc that would be the user's old file of that name.
    pub fn has_removed(&self, step: usize, path: &Path) -> bool {
        let removed = lock(&self.removed);
        let removed = removed.get(&step).is_some_and(|paths| paths.contains(path));
        removed && fs::symlink_metadata(path).is_err()
    }

    /// Whether a step looked for a file of the plan and did not find it. A clang that fails looks for its old output,
    /// and removes it if it is there.
    pub fn has_missed(&self, step: usize, path: &Path) -> bool {
        let missed = lock(&self.missed);
        missed.get(&step).is_some_and(|paths| paths.contains(path))
    }

    /// A file besides the outputs that a step changed, or would have changed next.
    pub fn changed(&self) -> Option<PathBuf> {
        lock(&self.changed).clone()
    }

    /// Notes what a run of `step` did.
    pub fn note(&self, step: usize, observed: &Observed, scene: &Scene<'_>) {
        for (seen, noted) in [
            (&observed.removed, &self.removed),
            (&observed.missing, &self.missed),
        ] {
            let own = seen.iter().filter(|path| scene.is_own(path));
            let own: BTreeSet<_> = own.map(|path| scene.directory.join(path)).collect();
            if !own.is_empty() {
                lock(noted).entry(step).or_default().extend(own);
            }
        }
        // A compiler cache's own files are the same in any order.
        let is_caches = |path: &Path| {
            let writer = observed.writers.get(path.as_os_str());
            writer.is_some_and(|program| is_compiler_cache(program))
        };
        let is_other = |path: &Path| !(scene.is_own(path) || is_caches(path));
        let written = observed.written.keys().filter(|path| is_other(path));
        let written: Vec<PathBuf> = written.map(|path| scene.directory.join(path)).collect();
        let mut removed = observed.removed.iter().filter(|path| is_other(path));
        let changed = (observed.held.as_deref().map(Path::to_owned))
            .or_else(|| written.iter().find(|file| keeps_content(file)).cloned())
            .or_else(|| removed.next().map(|path| scene.directory.join(path)))
            // It may do so later.
            .or_else(|| observed.unfinished.clone());
        if let Some(changed) = changed {
            lock(&self.changed).get_or_insert(changed);
        }
        lock(&self.written).extend(written);
    }

    /// Removes the files whose names are made from one in the scratch folder, and the folders that were made for them: gcc's
    /// modules are in `gcm.cache`, below the whole path of their source. No other call has such a name.
    pub fn remove_private_names(&self, scratch: &Path) {
        let all_scratch = scratch.parent().and_then(Path::file_name);
        let is_for_it = |folder: &Path| {
            own_name::is_in_name(folder, scratch) || folder.file_name() == all_scratch
        };
        let written = lock(&self.written);
        let named = written.iter();
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a file that was written is not one like `/dev/null`, which keeps nothing.
fn keeps_content(file: &Path) -> bool {
    fs::metadata(file).map_or(true, |found| found.is_file())
}
