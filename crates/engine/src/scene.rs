//! Where a run took place, and which files there are its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_path_map::BASE;

/// Where a run took place, to know what is its own.
pub struct Scene<'a> {
    /// The private folder.
    pub scratch: &'a Path,
    /// The working directory.
    pub directory: &'a Path,
    /// The watch library.
    pub library: &'a Path,
    /// `PATH` of the commands.
    pub path: Option<&'a OsStr>,
    /// When it began.
    pub began: SystemTime,
    /// Files of the plan, which are in the key.
    pub own: &'a dyn Fn(&Path) -> bool,
    /// Files of any step of the plan: what one step writes may name what an earlier one read.
    pub planned: &'a dyn Fn(&Path) -> bool,
    /// The files that the run is to write.
    pub writes: &'a [&'a Path],
    /// The user's names of those that it writes elsewhere.
    pub placed_later: &'a [PathBuf],
}

impl Scene<'_> {
    /// Whether the path is the run's own: private, or of the plan.
    pub fn is_own(&self, path: &Path) -> bool {
        // A fixed name leads nowhere: the tool that looked for it knows the file's text already.
        path.starts_with(self.scratch) || path.starts_with(BASE) || (self.own)(path)
    }

    /// Whether a name is made from that of a file that the run is to write: `a.gcda` from `a.o`.
    pub fn is_derived(&self, path: &Path) -> bool {
        // `a.cpp.gch`: every file that gcc includes may have a precompiled one.
        let is_precompiled = || (self.own)(&path.with_extension(""));
        let is_like = |written: &&Path| {
            let stem = written.file_stem().unwrap_or_default().as_bytes();
            let name = path.file_name().unwrap_or_default().as_bytes();
            let ending = name
                .strip_prefix(stem)
                .and_then(|rest| rest.strip_prefix(b"."));
            path.parent() == written.parent() && ending.is_some_and(|e| !e.contains(&b'.'))
        };
        self.writes.iter().any(is_like) && !is_precompiled()
    }
}
