//! Searches of `PATH`: for each program that was looked for, the files of that name in its folders, in order.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use crate::run_environment::RunEnvironment;
use crate::search_path::{FilesInPath, is_executable};

/// The programs that were looked for, and what `PATH` had for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Searches {
    /// Names, each with the BLAKE3 of the list of files.
    found: Vec<(Vec<u8>, [u8; 32])>,
}

impl Searches {
    pub(super) fn run(names: &BTreeSet<OsString>, place: RunEnvironment<'_>) -> Self {
        let list = |name: &OsString| (name.as_bytes().to_vec(), files(name, place));
        Self {
            found: names.iter().map(list).collect(),
        }
    }

    pub(super) fn hold(&self, place: RunEnvironment<'_>) -> bool {
        let same =
            |(name, list): &(Vec<u8>, [u8; 32])| files(OsStr::from_bytes(name), place) == *list;
        self.found.iter().all(same)
    }

    pub(super) fn names(&self) -> BTreeSet<OsString> {
        let name = |(name, _): &(Vec<u8>, _)| OsString::from_vec(name.clone());
        self.found.iter().map(name).collect()
    }
}

/// The BLAKE3 of the executable files of that name in the folders of `PATH`, in order.
fn files(name: &OsStr, place: RunEnvironment<'_>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let path = place.variable(OsStr::new("PATH")).unwrap_or_default();
    let mut files = FilesInPath::new(path, place.directory, name);
    while let Some(file) = files.next() {
        if is_executable(file) {
            hasher.update(&place.path_map.fixed_bytes(file.as_os_str().as_bytes()));
            hasher.update(b"\0");
        }
    }
    hasher.finalize().into()
}
