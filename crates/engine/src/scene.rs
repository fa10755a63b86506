//! The place of a run, and the files that are its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_path_map::BASE;

use crate::known_programs::KnownPrograms;

/// The place of a run, by which its own files are recognised.
pub struct Scene<'a> {
    /// The private folder.
    pub scratch: &'a Path,
    /// The working directory.
    pub directory: &'a Path,
    /// The watch library.
    pub library: &'a Path,
    /// `PATH` of the commands.
    pub path: Option<&'a OsStr>,
    /// Which programs ask for variables by name only.
    pub known: &'a KnownPrograms<'a>,
    /// When it began.
    pub began: SystemTime,
    /// Whether a path is a file of this step, whose content is in the key.
    pub own: &'a dyn Fn(&Path) -> bool,
    /// Whether a path is a file of any step of the plan: the output of one step may name an input of an earlier one.
    pub planned: &'a dyn Fn(&Path) -> bool,
    /// The files that the run must write.
    pub writes: &'a [&'a Path],
    /// The user's names of the outputs that the run writes under another name.
    pub placed_later: &'a [PathBuf],
}

impl Scene<'_> {
    /// Whether the path is the run's own: in the private folder, or a file of the plan.
    pub fn is_own(&self, path: &Path) -> bool {
        // A fixed name leads to no file: the tool that looked for it has the file's text already.
        path.starts_with(self.scratch) || path.starts_with(BASE) || (self.own)(path)
    }

    /// Whether a name is made from that of a file that the run must write: `a.gcda` from `a.o`.
    pub fn is_derived(&self, path: &Path) -> bool {
        // The name is `a.cpp.gch`: every file that gcc includes may have a precompiled one.
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
