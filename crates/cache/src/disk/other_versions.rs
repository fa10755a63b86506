//! Entries of other versions of warpcc in the same folder, which this version does not read: their size, and their removal.

use super::error::StoreError;
use super::gc::{Collected, list_into};
use super::layout::is_read;
use super::store::DiskStore;

/// A folder of entries in a format that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// Its name in the cache's folder, which ends in the version.
    pub folder: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// The number of entries.
    pub entries: u64,
}

impl DiskStore {
    /// The folders that only other versions read, by name. The bytes of their results are shared with this version, and not
    /// included.
    pub fn other_versions(&self) -> Result<Vec<OtherVersion>, StoreError> {
        let mut all = Vec::new();
        for path in self.entry_folders()? {
            let name = path.file_name().unwrap_or_default();
            if is_read(name) {
                continue;
            }
            let mut entries = Vec::new();
            list_into(&path, &mut entries)?;
            all.push(OtherVersion {
                folder: name.to_string_lossy().into_owned(),
                bytes: entries.iter().map(|entry| entry.size).sum(),
                entries: entries.len() as u64,
            });
        }
        all.retain(|found| found.entries > 0);
        all.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(all)
    }

    /// Removes these entries. The other versions then start without them.
    pub fn remove_other_versions(&self) -> Result<Collected, StoreError> {
        self.writable()?;
        let mut collected = Collected::default();
        let Some(_lock) = self.lock_collection()? else {
            return Ok(collected);
        };
        collected.ran = true;
        for path in self.entry_folders()? {
            if is_read(path.file_name().unwrap_or_default()) {
                continue;
            }
            let mut entries = Vec::new();
            list_into(&path, &mut entries)?;
            for entry in entries {
                // An entry that cannot be removed is counted by the next `stats`.
                if std::fs::remove_file(&entry.path).is_ok() {
                    collected.removed += 1;
                    collected.freed += entry.size;
                }
            }
            // The folder is empty now, unless another version is running.
            drop(std::fs::remove_dir_all(&path));
        }
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (freed, removed) = (signed(collected.freed), signed(collected.removed));
        self.growth.add(-freed, -removed);
        collected.left = self.estimated_size();
        Ok(collected)
    }
}
