//! Results and bytes in a folder: content-addressed blobs, records of what runs saw and made, notes and counters.
//!
//! ```text
//! blobs-v1/ab/<sha256>-<length>   bytes            disk/blob.rs
//! direct-v4/ab/<key>              records          record.rs
//! steps-v4/ab/<key>               records          record.rs
//! kernels-v4/ab/<key>             records          record.rs
//! notes-v1/<kind>/ab/<key>        small values     disk/notes.rs
//! stats-v1.log, size-v1.log       sums             disk/tally.rs
//! tmp/                            files on their way in
//! gc.lock                         one eviction at a time
//! never-upload                    made by people: what is in here is given to no shared cache
//! ```
//!
//! Every file comes into place by a rename, so that a reader sees all of it or nothing; every file is checksummed, so that one which a crash or a bad disk spoiled is a miss. The version in a name changes when the format does; old files are then ignored and evicted like others. Modification times say when an entry was last used, to the hour.

mod access;
mod blob;
mod counters;
mod error;
mod file;
mod frames;
mod gc;
mod install;
mod notes;
mod records;
mod room;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

pub use access::{Access, is_never_uploaded};
pub use blob::Packing;
pub use error::{OpenError, StoreError};
pub use gc::{Collected, Report};
pub use install::Staged;
pub use records::{Lookup, Suits, Why};

use crate::digest::Digest;
use crate::key::Key;
use counters::Tally;
use file::TempFile;

const BLOBS: &str = "blobs-v1";
const NOTES: &str = "notes-v1";
const TEMPORARY: &str = "tmp";

/// How a store behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most bytes to keep; 0 for no limit. Exceeded between collections.
    pub max_size: u64,
    /// Never write to the store.
    pub readonly: bool,
}

/// Which results: of whole invocations, of single steps, of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Whole invocations.
    Direct,
    /// Single steps.
    Steps,
    /// Kernels that programs compile when they run.
    Kernels,
}

impl Level {
    fn folder(self) -> &'static str {
        match self {
            Level::Direct => "direct-v4",
            Level::Steps => "steps-v4",
            Level::Kernels => "kernels-v4",
        }
    }
}

/// A store in a folder. Any number of processes may use one at a time.
#[derive(Debug)]
pub struct DiskStore {
    root: PathBuf,
    options: Options,
    access: Access,
    closed: bool,
    counters: Tally,
    sizes: Tally,
}

impl DiskStore {
    /// Opens the store in `root`, which is created by the first write, for whoever the umask lets in.
    pub fn open(root: &Path, options: Options) -> Result<DiskStore, OpenError> {
        DiskStore::open_for(root, options, Access::ByUmask)
    }

    /// Opens the store in `root`. A private one is created here, and refused where others can write to it.
    pub fn open_for(root: &Path, options: Options, access: Access) -> Result<DiskStore, OpenError> {
        let mut closed = false;
        match std::fs::metadata(root) {
            Ok(found) if !found.is_dir() => {
                return Err(OpenError::NotADirectory {
                    path: root.to_path_buf(),
                });
            }
            Ok(found) if access == Access::Private => {
                closed = access::claim(root, &found, options.readonly)? == access::Claimed::Closed;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if access == Access::Private && !options.readonly {
                    access::create_root(root);
                }
            }
            Err(source) => {
                return Err(OpenError::Unreachable {
                    path: root.to_path_buf(),
                    source,
                });
            }
        }
        Ok(DiskStore {
            root: root.to_path_buf(),
            options,
            access,
            closed,
            counters: Tally::new(root.join("stats-v1.log"), 1 << 20, access),
            // Read whole to know the size, so kept short.
            sizes: Tally::new(root.join("size-v1.log"), 16 << 10, access),
        })
    }

    /// Whose it is.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Whether others could write to it until it was opened.
    pub fn was_closed(&self) -> bool {
        self.closed
    }

    /// The folder it is in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How it behaves.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Adds to counters, of a read-only store too: they are about the builds, not about what is
    /// kept. Counting is advice: what cannot be written is lost.
    pub fn count(&self, counts: &[(&str, u64)]) {
        let signed = counts
            .iter()
            .map(|(name, n)| (*name, i64::try_from(*n).unwrap_or(i64::MAX)));
        let signed: Vec<_> = signed.collect();
        self.counters.add(&signed);
    }

    /// All counters.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let sums = self.counters.sums();
        sums.into_iter()
            .map(|(name, sum)| (name, u64::try_from(sum).unwrap_or(0)))
            .collect()
    }

    /// Sets every counter to nothing.
    pub fn zero_counters(&self) -> Result<(), StoreError> {
        self.writable()?;
        self.counters.replace(&[])
    }

    fn writable(&self) -> Result<(), StoreError> {
        match self.options.readonly {
            true => Err(StoreError::ReadOnly),
            false => Ok(()),
        }
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let mut path = self.root.join(BLOBS);
        path.push(&hex[..2]);
        path.push(format!("{hex}-{}", digest.size));
        path
    }

    fn record_path(&self, level: Level, key: &Key) -> PathBuf {
        self.key_path(Path::new(level.folder()), key)
    }

    fn key_path(&self, folder: &Path, key: &Key) -> PathBuf {
        let hex = key.hex();
        let mut path = self.root.join(folder);
        path.push(&hex[..2]);
        path.push(&hex);
        path
    }

    fn temporary(&self) -> Result<TempFile, StoreError> {
        let folder = self.root.join(TEMPORARY);
        TempFile::create_with_folder(&folder, self.access)
            .map_err(|source| StoreError::io("create a file in", &folder, source))
    }

    /// Writes a file all at once, in place of what is there.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let before = std::fs::metadata(path).ok().map(|found| found.len());
        let mut temporary = self.temporary()?;
        temporary
            .write_all(bytes)
            .map_err(|source| StoreError::io("write", temporary.path(), source))?;
        self.bring_in(temporary, path, bytes.len() as u64, before)
    }

    /// Moves a finished file into place and counts its size.
    fn bring_in(
        &self,
        temporary: TempFile,
        path: &Path,
        length: u64,
        before: Option<u64>,
    ) -> Result<(), StoreError> {
        temporary
            .move_to_with_folder(path, self.access)
            .map_err(|source| StoreError::io("put in place", path, source))?;
        let grown = on_disk(length) - before.map_or(0, on_disk);
        let entries = i64::from(before.is_none());
        if grown != 0 || entries != 0 {
            self.sizes.add(&[("bytes", grown), ("entries", entries)]);
        }
        Ok(())
    }

    /// Removes what cannot be trusted, and counts that.
    fn remove_bad(&self, path: &Path, counter: &str) {
        if self.options.readonly {
            return;
        }
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        if std::fs::remove_file(path).is_ok() {
            self.sizes
                .add(&[("bytes", -on_disk(length)), ("entries", -1)]);
        }
        self.count(&[(counter, 1)]);
    }
}

/// The room that a file takes: whole blocks, as most file systems give.
fn on_disk(length: u64) -> i64 {
    i64::try_from(length.div_ceil(4096).saturating_mul(4096)).unwrap_or(i64::MAX)
}

/// Whether a folder's name is one that this or another version keeps entries in.
fn holds_entries(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let kinds = ["blobs-v", "direct-v", "steps-v", "kernels-v", "notes-v"];
    kinds.iter().any(|kind| {
        let version = name.strip_prefix(kind);
        version.is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
    })
}
