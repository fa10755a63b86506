//! Names the folders of a store, and computes the disk space of a file in one.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

pub(super) const BLOBS: &str = "blobs-v1";
pub(super) const NOTES: &str = "notes-v1";
pub(super) const TEMPORARY: &str = "tmp";

/// Which results: of whole invocations, of single steps, of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Whole invocations.
    Direct,
    /// Single steps.
    Steps,
    /// Kernels that programs compile when they run.
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
}

/// The room that a file takes: whole blocks, as most file systems give.
pub(super) fn on_disk(length: u64) -> i64 {
    i64::try_from(length.div_ceil(4096).saturating_mul(4096)).unwrap_or(i64::MAX)
}

/// Whether a folder's name is one that this or another version keeps entries in.
pub(super) fn holds_entries(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let kinds = ["blobs-v", "direct-v", "steps-v", "kernels-v", "notes-v"];
    kinds.iter().any(|kind| {
        let version = name.strip_prefix(kind);
        version.is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
    })
}
