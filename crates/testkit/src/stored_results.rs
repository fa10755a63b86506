//! Keeps what is slow to make from one run of the tests to the next. It does not know what its keys are made of.
//!
//! Processes share the folder: an entry is written beside its place and renamed. One that cannot be read whole is not there.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_128;

/// A folder with a file for each key.
#[derive(Clone, Debug)]
pub struct Store {
    /// Where it is. It need not be there yet.
    pub folder: PathBuf,
    /// The most bytes that it may hold.
    pub limit: u64,
}

impl Store {
    /// The content last written under this key; `None` if a part of it is missing.
    pub fn read(&self, key: u128) -> Option<Vec<u8>> {
        let path = self.path(key);
        let entry = fs::read(&path).ok()?;
        let (sum, packed) = entry.split_first_chunk::<16>()?;
        if u128::from_le_bytes(*sum) != xxh3_128(packed) {
            return None;
        }
        let bytes = zstd::decode_all(packed).ok()?;
        // The most recently used entry is removed last. On a read-only disk, nothing is removed.
        _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps the bytes, and removes what was not used for longest where that is too much.
    pub fn write(&self, key: u128, bytes: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let packed = zstd::encode_all(bytes, 3)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&xxh3_128(&packed).to_le_bytes())?;
        file.write_all(&packed)?;
        file.persist(self.path(key))
            .map_err(|failed| failed.error)?;
        self.trim()
    }

    fn path(&self, key: u128) -> PathBuf {
        self.folder.join(format!("{key:032x}"))
    }

    /// Whatever is in the folder counts, and so does what killed writers left.
    fn trim(&self) -> std::io::Result<()> {
        let listing = fs::read_dir(&self.folder)?.flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = listing
            .filter_map(|item| {
                // Another process may have removed it since.
                let meta = item.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), item.path()))
            })
            .collect();
        files.sort_unstable_by(|a, b| b.cmp(a));
        let mut total = 0;
        for (_, size, path) in files {
            total += size;
            if total > self.limit {
                _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(limit: u64) -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("kept");
        (home, Store { folder, limit })
    }

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_not() {
        let (_home, store) = store(1 << 20);
        assert_eq!(store.read(7), None);
        store.write(7, b"result").expect("it is written");
        assert_eq!(store.read(7).as_deref(), Some(&b"result"[..]));
        assert_eq!(store.read(8), None);
        let path = store.path(7);
        let whole = fs::read(&path).expect("an entry");
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a shorter one");
            assert_eq!(store.read(7), None, "{length} bytes");
            let mut other = whole.clone();
            other[length] ^= 1;
            fs::write(&path, other).expect("another one");
            assert_eq!(store.read(7), None, "byte {length}");
        }
    }

    #[test]
    fn what_was_used_last_stays() {
        let (_home, store) = store(1 << 20);
        for key in 0..4 {
            store.write(key, b"result").expect("it is written");
            let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + key as u64);
            let file = File::options().append(true).open(store.path(key));
            file.and_then(|file| file.set_modified(old))
                .expect("a time");
        }
        assert!(store.read(0).is_some());
        let size = fs::metadata(store.path(0)).expect("an entry").len();
        let small = Store {
            limit: 3 * size,
            ..store
        };
        small.write(9, b"result").expect("it is written");
        let left: Vec<bool> = [0, 1, 2, 3, 9]
            .map(|key| small.read(key).is_some())
            .to_vec();
        assert_eq!(left, [true, false, false, true, true]);
    }
}
