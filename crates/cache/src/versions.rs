//! The version of each format in a cache, and the older ones that are still read.
//!
//! | what | version | of it |
//! |---|---|---|
//! | results: `direct-v4`, `steps-v4`, `kernels-v4` | [`RECORDS`] | the magic of `record.rs`, which travels to shared caches too |
//! | bytes: `blobs-v1` | in `disk/blob.rs` | named by their SHA-256, so they serve every version of the records |
//! | notes, counters, the upload queue | in their names | made anew where they are missing |
//! | keys | the domain in each [`Hashing`](crate::Hashing) | a new one, and the old entries are asked for no more |
//!
//! A change of what a record contains or means raises [`RECORDS`]. If the older records still mean the same, their version
//! is added to [`ALSO_READ`], and `upgrade` in `record.rs` gets their decoder. If not, a look-up reports them as misses of
//! another version. A record as this version writes it is kept in `tests/versions`, so that no change of the format goes
//! unnoticed.

/// The version of the records that are written.
pub const RECORDS: u32 = 4;

/// Older versions whose records are read, the newest first. There are none. Records of version 3 and before lack the
/// resolved paths of some files, without which a result cannot be checked. No release wrote them.
#[cfg(not(test))]
pub(crate) const ALSO_READ: &[u32] = &[];
/// The unit tests read one more, to test the upgrade.
#[cfg(test)]
pub(crate) const ALSO_READ: &[u32] = &[3];

/// Whether records of a version are read.
pub(crate) fn is_read(version: u32) -> bool {
    version == RECORDS || ALSO_READ.contains(&version)
}

/// Versions whose records are not read and may be in a cache: all earlier ones, and the next one after a downgrade.
pub(crate) fn not_read() -> impl Iterator<Item = u32> {
    (1..=RECORDS + 1).rev().filter(|version| !is_read(*version))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::{
        DiskStore, Hashing, InputManifest, Key, Level, Lookup, LookupMiss, Options, Outcome,
    };

    fn store(root: &std::path::Path, readonly: bool) -> DiskStore {
        let options = Options {
            max_size: 0,
            readonly,
        };
        DiskStore::open(root, options).expect("open")
    }

    /// Stores a result in the folder of another version, with the magic of that version.
    fn leave(store: &DiskStore, version: u32, key: &Key, outcome: &Outcome) {
        store
            .store(Level::Steps, key, &InputManifest::default(), outcome)
            .expect("store");
        let hex = key.hex();
        let at = |version| {
            let root = store.root();
            root.join(format!("steps-v{version}/{}/{hex}", &hex[..2]))
        };
        let mut record = fs::read(at(RECORDS)).expect("a record");
        record[6..8].copy_from_slice(format!("{version:02}").as_bytes());
        let checksum = xxh3_64(&record[..40]);
        record[40..48].copy_from_slice(&checksum.to_le_bytes());
        fs::create_dir_all(at(version).parent().expect("a parent")).expect("a folder");
        fs::write(at(version), record).expect("write");
        fs::remove_file(at(RECORDS)).expect("it was there");
    }

    #[test]
    fn an_older_version_that_is_read_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let ours = store(folder.path(), false);
        let key = Hashing::new("test").finish();
        let outcome = Outcome {
            stdout: b"of the older one".to_vec(),
            ..Outcome::default()
        };
        leave(&ours, 3, &key, &outcome);
        let here = std::path::Path::new("/");
        let hit = |store: &DiskStore| match store.look_up(Level::Steps, &key, here) {
            Lookup::Hit(found, _) => assert_eq!(found, outcome),
            other => panic!("{other:?}"),
        };
        assert_eq!(ours.remembered(Level::Steps, &key).len(), 1);
        // A read-only store upgrades too, and stores nothing.
        fs::remove_dir_all(folder.path().join("steps-v4")).expect("it was written");
        hit(&store(folder.path(), true));
        assert!(!folder.path().join("steps-v4").exists());
        hit(&ours);
        // The older record, which stayed for an older program, is removed here.
        fs::remove_dir_all(folder.path().join("steps-v3")).expect("it is there");
        hit(&ours);
        assert_eq!(ours.other_versions().expect("a list"), []);
    }

    #[test]
    fn a_version_that_is_not_read_is_a_miss_that_says_so() {
        for version in [2, RECORDS + 1] {
            let folder = tempfile::tempdir().expect("a folder");
            let ours = store(folder.path(), false);
            let key = Hashing::new("test").finish();
            leave(&ours, version, &key, &Outcome::default());
            let look = || ours.look_up(Level::Steps, &key, std::path::Path::new("/"));
            match look() {
                Lookup::Miss(LookupMiss::OtherVersion(found)) => assert_eq!(found, version),
                other => panic!("{other:?}"),
            }
            assert_eq!(ours.counters().get("record_other_version"), Some(&1));
            let found = ours.other_versions().expect("a list");
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].folder, format!("steps-v{version}"));
            assert_eq!((found[0].entries, found[0].bytes), (1, 4096));
            // The entries of this version stay.
            let mine = Hashing::new("mine").finish();
            let nothing = (InputManifest::default(), Outcome::default());
            ours.store(Level::Steps, &mine, &nothing.0, &nothing.1)
                .expect("store");
            let removed = ours.remove_other_versions().expect("removes");
            assert_eq!((removed.ran, removed.removed), (true, 1));
            assert_eq!(ours.other_versions().expect("a list"), []);
            assert!(matches!(look(), Lookup::Miss(LookupMiss::NoRecord)));
            assert_eq!(ours.remembered(Level::Steps, &mine).len(), 1);
        }
    }
}
