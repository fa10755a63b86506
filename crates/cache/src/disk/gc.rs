//! Keeps the store within its size, and verifies its content.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::StoreError;
use super::layout::{BLOBS, Level, NOTES, TEMPORARY, holds_entries, is_read, on_disk};
use super::store::DiskStore;
use super::{blob_file, notes, records};

/// A temporary file that is older than this belongs to a process that died.
const STALE: Duration = Duration::from_secs(3600);

/// The result of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// False if another process is collecting.
    pub ran: bool,
    /// Entries removed.
    pub removed: u64,
    /// Bytes freed.
    pub freed: u64,
    /// Bytes left.
    pub left: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of entries that were read.
    pub checked: u64,
    /// The damaged ones, which were removed unless the store is read-only.
    pub bad: Vec<PathBuf>,
}

pub(super) struct StoreEntry {
    pub(super) path: PathBuf,
    used: SystemTime,
    pub(super) size: u64,
}

impl DiskStore {
    /// Bytes on disk and number of entries, counted one by one.
    pub fn size(&self) -> Result<(u64, u64), StoreError> {
        let entries = self.entries()?;
        let bytes = entries.iter().map(|entry| entry.size).sum();
        Ok((bytes, entries.len() as u64))
    }

    /// The number of records of one level, counted one by one.
    pub fn count_records(&self, level: Level) -> Result<u64, StoreError> {
        let mut records = Vec::new();
        list_into(&self.root.join(level.folder()), &mut records)?;
        Ok(records.len() as u64)
    }

    /// Whether the store is probably larger than it may be. Reads one small file.
    pub fn needs_gc(&self) -> bool {
        let limit = self.options.max_size;
        limit > 0 && !self.options.readonly && self.estimated_size() > limit
    }

    /// The store's size as the sum of additions and removals, without looking at the files.
    pub fn estimated_size(&self) -> u64 {
        let sums = self.growth.sums();
        let bytes = sums.get("bytes").copied().unwrap_or(0);
        u64::try_from(bytes).unwrap_or(0)
    }

    /// Bytes on disk and number of entries by the same sums, so this is as quick for a million entries as for a thousand. If
    /// there are no sums, the entries are counted one by one.
    pub fn estimate(&self) -> Result<(u64, u64), StoreError> {
        let sums = self.growth.sums();
        let sum = |name: &str| u64::try_from(sums.get(name).copied().unwrap_or(0)).unwrap_or(0);
        match sums.is_empty() {
            true => self.size(),
            false => Ok((sum("bytes"), sum("entries"))),
        }
    }

    /// The size at which a collection stops: nine tenths of the limit, so that the next one is not due at once.
    pub fn gc_target(&self) -> u64 {
        match self.options.max_size {
            0 => u64::MAX,
            limit => limit / 10 * 9,
        }
    }

    /// Removes the least recently used entries until at most `target` bytes are left, and files that dead processes left.
    pub fn gc(&self, target: u64) -> Result<Collected, StoreError> {
        self.collect(|_, left| left > target)
    }

    /// As [`Self::gc`], but removes the entries that were last used before `time`. When an entry was used is known to the hour.
    pub fn gc_unused_since(&self, time: SystemTime) -> Result<Collected, StoreError> {
        self.collect(|used, _| used < time)
    }

    /// Removes entries, the least recently used first, until `too_much` says no to one: it gets when the entry was last used, and
    /// how many bytes are left.
    fn collect(&self, too_much: impl Fn(SystemTime, u64) -> bool) -> Result<Collected, StoreError> {
        self.writable()?;
        let Some(_lock) = self.lock_collection()? else {
            return Ok(Collected::default());
        };
        self.remove_stale();
        let mut entries = self.entries()?;
        entries.sort_by_key(|entry| entry.used);
        let mut left: u64 = entries.iter().map(|entry| entry.size).sum();
        let mut collected = Collected {
            ran: true,
            ..Collected::default()
        };
        let mut kept = entries.len() as u64;
        for entry in entries {
            if !too_much(entry.used, left) {
                break;
            }
            // It may have been used, or replaced, since it was listed.
            let used = std::fs::metadata(&entry.path).and_then(|found| found.modified());
            if used.is_ok_and(|used| used != entry.used) {
                continue;
            }
            match std::fs::remove_file(&entry.path) {
                Ok(()) => {
                    collected.removed += 1;
                    collected.freed += entry.size;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::io("remove", &entry.path, source)),
            }
            left -= entry.size;
            kept -= 1;
        }
        collected.left = left;
        self.set_estimate(left, kept);
        Ok(collected)
    }

    /// Removes every entry. Counters stay.
    pub fn clear(&self) -> Result<(), StoreError> {
        self.writable()?;
        for folder in self.entry_folders()? {
            match std::fs::remove_dir_all(&folder) {
                Ok(()) => {}
                // Another process added an entry, or cleared the store too.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                    ) => {}
                Err(source) => return Err(StoreError::io("remove", &folder, source)),
            }
        }
        if self.root.is_dir() {
            self.set_estimate(0, 0);
        }
        Ok(())
    }

    /// Reads all entries and removes the damaged ones.
    pub fn verify(&self) -> Result<Report, StoreError> {
        let mut report = Report::default();
        for entry in self.entries()? {
            let inside = entry.path.strip_prefix(&self.root).unwrap_or(&entry.path);
            let folder = inside.iter().next().unwrap_or_default();
            let sound = match folder.to_str() {
                Some(BLOBS) => blob_file::verify(&entry.path),
                Some(NOTES) => notes::verify(&entry.path),
                _ if is_read(folder) => records::verify(&entry.path),
                // This folder belongs to another version.
                _ => continue,
            };
            report.checked += 1;
            match sound {
                Ok(true) => {}
                Ok(false) => {
                    self.remove_bad(&entry.path, "verify_bad");
                    report.bad.push(entry.path);
                }
                Err(source) => return Err(StoreError::io("read", &entry.path, source)),
            }
        }
        Ok(report)
    }

    /// Corrects the estimate by an addition of the difference. So it neither waits for writers nor loses what they add
    /// meanwhile.
    fn set_estimate(&self, bytes: u64, entries: u64) {
        let sums = self.growth.sums();
        let off = |name: &str, now: u64| {
            let now = i64::try_from(now).unwrap_or(i64::MAX);
            now.saturating_sub(sums.get(name).copied().unwrap_or(0))
        };
        let (bytes, entries) = (off("bytes", bytes), off("entries", entries));
        self.growth.add(bytes, entries);
    }

    pub(super) fn lock_collection(&self) -> Result<Option<File>, StoreError> {
        let path = self.root.join("gc.lock");
        let mode = self.access.file_mode();
        let open = || {
            let mut options = File::options();
            options.append(true).create(true).mode(mode).open(&path)
        };
        let file = super::file::with_folder(Some(&self.root), self.access, open)
            .map_err(|source| StoreError::io("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(source)) => Err(StoreError::io("lock", &path, source)),
        }
    }

    /// Removes temporary files that dead processes left, including those of the counters.
    fn remove_stale(&self) {
        let now = SystemTime::now();
        for folder in [self.root.join(TEMPORARY), self.root.clone()] {
            let Ok(listing) = std::fs::read_dir(&folder) else {
                continue;
            };
            for found in listing.flatten() {
                let ours = found.file_name().to_string_lossy().starts_with(".warpcc-");
                let changed = found.metadata().and_then(|found| found.modified());
                let stale = changed
                    .is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > STALE));
                if ours && stale {
                    // The next collection tries again.
                    drop(std::fs::remove_file(found.path()));
                }
            }
        }
    }

    pub(super) fn entry_folders(&self) -> Result<Vec<PathBuf>, StoreError> {
        let listing = match std::fs::read_dir(&self.root) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(StoreError::io("list", &self.root, source)),
        };
        let folders = listing.flatten().filter(|found| {
            holds_entries(&found.file_name()) && found.file_type().is_ok_and(|kind| kind.is_dir())
        });
        Ok(folders.map(|found| found.path()).collect())
    }

    fn entries(&self) -> Result<Vec<StoreEntry>, StoreError> {
        let mut entries = Vec::new();
        for folder in self.entry_folders()? {
            list_into(&folder, &mut entries)?;
        }
        Ok(entries)
    }
}

/// Lists the files below a folder. A file that disappears meanwhile is skipped.
pub(super) fn list_into(folder: &Path, entries: &mut Vec<StoreEntry>) -> Result<(), StoreError> {
    let listing = match std::fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(StoreError::io("list", folder, source)),
    };
    for found in listing.flatten() {
        match found.metadata() {
            Ok(metadata) if metadata.is_dir() => list_into(&found.path(), entries)?,
            Ok(metadata) if metadata.is_file() => entries.push(StoreEntry {
                path: found.path(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                size: u64::try_from(on_disk(metadata.len())).unwrap_or(u64::MAX),
            }),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}
