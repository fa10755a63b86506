//! The store itself: its folder, its counters, and how files are added.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::access::{self, StoreAccess};
use super::counters::CounterFile;
use super::error::{OpenError, StoreError};
use super::file::TempFile;
use super::growth::GrowthLog;
use super::layout::{BLOBS, Level, TEMPORARY, on_disk};
use crate::digest::Digest;
use crate::key::Key;

/// How a store behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most bytes to keep; 0 for no limit. Between collections the store may be larger.
    pub max_size: u64,
    /// Never write to the store.
    pub readonly: bool,
}

/// A store in a folder. Any number of processes may use one at a time.
#[derive(Debug)]
pub struct DiskStore {
    pub(super) root: PathBuf,
    pub(super) options: Options,
    pub(super) access: StoreAccess,
    pub(super) closed: bool,
    pub(super) counters: CounterFile,
    pub(super) growth: GrowthLog,
}

impl DiskStore {
    /// Opens the store in `root`. The first write creates it, with the permissions that the umask leaves.
    pub fn open(root: &Path, options: Options) -> Result<DiskStore, OpenError> {
        DiskStore::open_for(root, options, StoreAccess::ByUmask)
    }

    /// Opens the store in `root`. A private store is created here, and refused if others can write to it.
    pub fn open_for(
        root: &Path,
        options: Options,
        access: StoreAccess,
    ) -> Result<DiskStore, OpenError> {
        let mut closed = false;
        match std::fs::metadata(root) {
            Ok(found) if !found.is_dir() => {
                return Err(OpenError::NotADirectory {
                    path: root.to_path_buf(),
                });
            }
            Ok(found) if access == StoreAccess::Private => {
                closed = access::claim(root, &found, options.readonly)? == access::Claimed::Closed;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if access == StoreAccess::Private && !options.readonly {
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
            counters: CounterFile::new(root.join("stats-v1.log"), 1 << 20, access),
            // The file is read as a whole to know the size, so it is kept short.
            growth: GrowthLog::new(CounterFile::new(root.join("size-v1.log"), 16 << 10, access)),
        })
    }

    /// The users who may use it.
    pub fn access(&self) -> StoreAccess {
        self.access
    }

    /// Whether other users could write to it until it was opened.
    pub fn was_closed(&self) -> bool {
        self.closed
    }

    /// The folder it is in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its options.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Adds to counters, even of a read-only store: they describe the builds, not the entries. Counts need not be exact: one
    /// that cannot be written is lost.
    pub fn count(&self, counts: &[(&str, u64)]) {
        let signed = counts
            .iter()
            .map(|(name, n)| (*name, i64::try_from(*n).unwrap_or(i64::MAX)));
        let signed: Vec<_> = signed.collect();
        self.counters.add(&signed);
    }

    /// All counters; none if they cannot be read.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        self.read_counters().unwrap_or_default()
    }

    /// All counters, for a program that shows them: it must not take counters that cannot be read for zeros.
    ///
    /// # Errors
    /// They exist, and cannot be read.
    pub fn read_counters(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let sums = self.counters.read_sums()?;
        let count = |(name, sum)| (name, u64::try_from(sum).unwrap_or(0));
        Ok(sums.into_iter().map(count).collect())
    }

    /// Creates the folder if it is missing, and lists it. Opening a store does not report a folder that cannot be created,
    /// because a build goes on without it; to a program that shows what is in it, it would seem to be empty.
    ///
    /// # Errors
    /// The folder cannot be created, or not be read. A read-only store may be missing.
    pub fn check_folder(&self) -> Result<(), StoreError> {
        match std::fs::read_dir(&self.root) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("read", &self.root, error))
            }
            Err(_) if self.options.readonly => Ok(()),
            Err(_) => (self.access.create_folder(&self.root))
                .map_err(|source| StoreError::io("create", &self.root, source)),
        }
    }

    /// Resets every counter.
    pub fn zero_counters(&self) -> Result<(), StoreError> {
        self.writable()?;
        self.counters.replace(&[])
    }

    pub(super) fn writable(&self) -> Result<(), StoreError> {
        match self.options.readonly {
            true => Err(StoreError::ReadOnly),
            false => Ok(()),
        }
    }

    pub(super) fn blob_path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let mut path = self.root.join(BLOBS);
        path.push(&hex[..2]);
        path.push(format!("{hex}-{}", digest.size));
        path
    }

    pub(super) fn record_path(&self, level: Level, key: &Key) -> PathBuf {
        self.key_path(Path::new(level.folder()), key)
    }

    pub(super) fn key_path(&self, folder: &Path, key: &Key) -> PathBuf {
        let hex = key.hex();
        let mut path = self.root.join(folder);
        path.push(&hex[..2]);
        path.push(&hex);
        path
    }

    pub(super) fn temporary(&self) -> Result<TempFile, StoreError> {
        let folder = self.root.join(TEMPORARY);
        TempFile::create_with_folder(&folder, self.access)
            .map_err(|source| StoreError::io("create a file in", &folder, source))
    }

    /// Writes a file as a whole, in place of an existing one.
    pub(super) fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let before = std::fs::metadata(path).ok().map(|found| found.len());
        let mut temporary = self.temporary()?;
        temporary
            .write_all(bytes)
            .map_err(|source| StoreError::io("write", temporary.path(), source))?;
        self.bring_in(temporary, path, bytes.len() as u64, before)
    }

    /// Moves a finished file into place and counts its size.
    pub(super) fn bring_in(
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
            self.growth.add(grown, entries);
        }
        Ok(())
    }

    /// Removes a file that cannot be trusted, and counts that.
    pub(super) fn remove_bad(&self, path: &Path, counter: &str) {
        if self.options.readonly {
            return;
        }
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        if std::fs::remove_file(path).is_ok() {
            self.growth.add(-on_disk(length), -1);
        }
        self.count(&[(counter, 1)]);
    }
}
