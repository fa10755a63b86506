//! Names the folders of a store, and computes how much disk space a file takes.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

use crate::versions::ALSO_READ;

pub(super) const BLOBS: &str = "blobs-v1";
pub(super) const NOTES: &str = "notes-v1";
pub(super) const TEMPORARY: &str = "tmp";

/// The level of results: whole invocations, single steps, or kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Whole invocations.
    Direct,
    /// Single steps.
    Steps,
    /// Kernels that programs compile while they run.
    Kernels,
}

impl Level {
    pub(super) fn folder(self) -> &'static str {
        match self {
            Level::Direct => "direct-v4",
            Level::Steps => "steps-v4",
            Level::Kernels => "kernels-v4",
        }
    }

    /// The folder of this level in another version.
    pub(super) fn folder_of(self, version: u32) -> String {
        let stem = self.folder().trim_end_matches(|c: char| c.is_ascii_digit());
        format!("{stem}{version}")
    }
}

/// The disk space of a file: whole blocks, as in most file systems.
pub(super) fn on_disk(length: u64) -> i64 {
    i64::try_from(length.div_ceil(4096).saturating_mul(4096)).unwrap_or(i64::MAX)
}

/// The kinds of entries. Each is in a folder with a version.
const KINDS: [&str; 5] = ["blobs", "direct", "steps", "kernels", "notes"];

/// Whether this or another version keeps entries in a folder of this name.
pub(super) fn holds_entries(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    KINDS.iter().any(|kind| {
        let version = name.strip_prefix(kind).and_then(|v| v.strip_prefix("-v"));
        version.is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Whether this version reads entries in a folder of this name.
pub(super) fn is_read(name: &OsStr) -> bool {
    let levels = [Level::Direct, Level::Steps, Level::Kernels];
    let is_level = |level: Level| {
        let older = ALSO_READ.iter();
        name == level.folder()
            || older
                .into_iter()
                .any(|v| name == level.folder_of(*v).as_str())
    };
    name == BLOBS || name == NOTES || levels.into_iter().any(is_level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::RECORDS;

    #[test]
    fn folders_are_named_after_the_version_of_their_records() {
        for level in [Level::Direct, Level::Steps, Level::Kernels] {
            assert_eq!(level.folder(), level.folder_of(RECORDS));
            assert!(holds_entries(level.folder_of(77).as_ref()));
            assert!(!is_read(level.folder_of(77).as_ref()));
        }
    }
}
