//! The environment, the working directory and the mapped folders of a call, in which conditions are checked.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use warpcc_cache::guards;
use warpcc_path_map::PathMap;

/// The environment in which conditions are checked.
#[derive(Clone, Copy)]
pub struct RunEnvironment<'a> {
    /// The environment, whole.
    pub environment: &'a [(OsString, OsString)],
    /// The working directory.
    pub directory: &'a Path,
    /// Folders whose names do not count.
    pub path_map: &'a PathMap,
}

impl RunEnvironment<'_> {
    /// A variable, the last one where there are several.
    pub fn variable(&self, name: &OsStr) -> Option<&OsStr> {
        let mut all = self.environment.iter().rev();
        let value = all.find(|(n, _)| n == name).map(|(_, v)| v.as_os_str());
        // Tools may take another name for the working directory from `PWD`. The directory itself has a condition of its own.
        if name == "PWD" {
            return directory_as_called(value, self.directory);
        }
        value
    }
}

/// The working directory under the name that `PWD` gives it, if that differs from the system's name for it: gcc and LLVM
/// write this name into debug information.
pub fn directory_as_called<'p>(pwd: Option<&'p OsStr>, directory: &Path) -> Option<&'p OsStr> {
    let called = Path::new(pwd?);
    if guards::is_off("pwd") {
        return None;
    }
    let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let leads_here = called.is_absolute()
        && called != directory
        && file(called).is_some_and(|found| Some(found) == file(directory));
    leads_here.then_some(called.as_os_str())
}
