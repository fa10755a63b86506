//! What the processes of a run saw of the file system: the watch logs, less what is the run's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warpcc_cache::roots::BASE;
use warpcc_watch::Observed;

/// Files read and names looked for, by one step or by many.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Read, run or loaded.
    pub read: BTreeSet<PathBuf>,
    /// Looked for in vain.
    pub missing: BTreeSet<PathBuf>,
    /// Looked at without being opened.
    pub found: BTreeSet<PathBuf>,
    /// Times of files that stand in results (see [`crate::times`]).
    pub times: Vec<u8>,
    /// Why this cannot be relied on.
    pub blind: Option<String>,
}

impl Seen {
    /// From a log of a run in `directory`, without the run's own files: those under `scratch`, the
    /// watch library, those that the process wrote itself, and those for which `own` holds.
    pub fn from_log(
        observed: Observed,
        scratch: &Path,
        directory: &Path,
        library: &Path,
        own: impl Fn(&Path) -> bool,
    ) -> Self {
        let mut seen = Self::default();
        let written = observed.written;
        let foreign = |path: &PathBuf| {
            // A fixed name leads nowhere: the tool that looked for it knows the file's text already.
            let ours = path.starts_with(scratch) || written.contains(path);
            !(ours || path.starts_with(BASE) || own(path))
        };
        // The gcc driver and cc1plus open folders like files; what is in them counts, not they.
        let is_folder = |path: &PathBuf| directory.join(path).is_dir();
        seen.read = observed
            .read
            .into_iter()
            .filter(|p| foreign(p) && !is_folder(p))
            .collect();
        seen.read.extend(observed.processes);
        seen.read
            .extend(observed.libraries.into_iter().filter(|l| l != library));
        seen.missing = observed.missing.into_iter().filter(&foreign).collect();
        seen.found = observed.found.into_iter().filter(&foreign).collect();
        seen.blind = observed.blind;
        seen
    }

    /// With relative paths as those of a run in `directory`.
    #[must_use]
    pub fn inside(mut self, directory: &Path) -> Self {
        for paths in [&mut self.read, &mut self.missing, &mut self.found] {
            *paths = paths.iter().map(|path| directory.join(path)).collect();
        }
        self
    }

    /// Adds what another saw.
    pub fn merge(&mut self, other: &Self) {
        self.read.extend(other.read.iter().cloned());
        self.missing.extend(other.missing.iter().cloned());
        self.times.extend_from_slice(&other.times);
        if self.blind.is_none() {
            self.blind.clone_from(&other.blind);
        }
    }

    /// A run that was not watched.
    pub fn unwatched(why: &str) -> Self {
        Self {
            blind: Some(why.to_owned()),
            ..Self::default()
        }
    }
}
