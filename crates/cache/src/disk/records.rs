//! Looks results up by what a run would see, and stores them.

use std::fs::File;
use std::path::Path;

use warpcc_path_map::{PathMap, WorkDir};

use super::error::StoreError;
use super::file::{mark_used, read_whole};
use super::layout::Level;
use super::store::DiskStore;
use crate::input_manifest::{Difference, InputManifest};
use crate::key::Key;
use crate::record::{
    MOST_VARIANTS, Outcome, RecordError, Stored, Variant, decode_record_of, identity_of,
    put_variant, start_record, upgrade, variants,
};
use crate::versions::{ALSO_READ, not_read};

/// Whether an outcome can be used, as far as that is known without its files. If it cannot, the error is a difference to
/// report, if there is one.
pub type Suits<'a> = &'a dyn Fn(&Outcome) -> Result<(), Option<Difference>>;

/// The result of a look-up.
#[derive(Debug)]
pub enum Lookup {
    /// The outcome of a run whose inputs are unchanged, and its input manifest. The blobs of the outcome may have been
    /// evicted.
    Hit(Outcome, InputManifest),
    /// No valid result was found.
    Miss(LookupMiss),
}

/// Why a look-up found nothing.
#[derive(Debug)]
pub enum LookupMiss {
    /// There is no record for this key.
    NoRecord,
    /// Every recorded run saw something else. This is the first difference from the latest run.
    Differs(Vec<Difference>),
    /// There is no record that this version reads, but one of another version of warpcc, in records of this version.
    OtherVersion(u32),
    /// The record was damaged, and was removed.
    Corrupt,
    /// The record cannot be read.
    Unreadable(StoreError),
}

impl DiskStore {
    /// The outcome of a recorded run that would see the same now, with relative paths taken from `base`, and without mapped
    /// folders.
    pub fn look_up(&self, level: Level, key: &Key, base: &Path) -> Lookup {
        self.look_up_if(level, key, WorkDir::plain(base), &|_| Ok(()), |_| {})
    }

    /// The same for a run in `at`, for outcomes that `suits` accepts. To check the manifest of the run used last takes a
    /// `stat` for each of a thousand headers. During this check, `meanwhile` gets that run's outcome and can prepare for a
    /// hit, which is likely.
    pub fn look_up_if(
        &self,
        level: Level,
        key: &Key,
        at: WorkDir<'_>,
        suits: Suits<'_>,
        meanwhile: impl FnOnce(&Outcome) + Send,
    ) -> Lookup {
        let path = self.record_path(level, key);
        let (file, bytes) = match self.read_record(level, key) {
            Ok(Some(read)) => read,
            Ok(None) => return Lookup::Miss(self.why_absent(level, key)),
            Err(source) => {
                return Lookup::Miss(LookupMiss::Unreadable(StoreError::io(
                    "read", &path, source,
                )));
            }
        };
        match self.first_that_holds((&path, &file, &bytes), key, at, suits, meanwhile) {
            Ok(found) => found,
            Err(_) => {
                self.remove_bad(&path, "record_corrupt");
                Lookup::Miss(LookupMiss::Corrupt)
            }
        }
    }

    /// The record of a key. A record in an older version's folder that this version reads is converted and stored. The older
    /// one stays for an older program.
    fn read_record(&self, level: Level, key: &Key) -> std::io::Result<Option<(File, Vec<u8>)>> {
        let path = self.record_path(level, key);
        if let Some(read) = read_whole(&path)? {
            return Ok(Some(read));
        }
        for version in ALSO_READ {
            let older = self.key_path(Path::new(&level.folder_of(*version)), key);
            let Some((file, bytes)) = read_whole(&older)? else {
                continue;
            };
            let Ok(bytes) = upgrade(&bytes, key) else {
                self.remove_bad(&older, "record_corrupt");
                continue;
            };
            // If the converted one cannot be stored, the old one is converted again next time.
            drop(
                self.writable()
                    .and_then(|()| self.write_whole(&path, &bytes)),
            );
            return Ok(Some((file, bytes)));
        }
        Ok(None)
    }

    /// Whether another version of warpcc has a record of this key. It is checked before a tool runs, so its cost does not
    /// matter.
    fn why_absent(&self, level: Level, key: &Key) -> LookupMiss {
        let is_there = |version: &u32| {
            let path = self.key_path(Path::new(&level.folder_of(*version)), key);
            path.exists()
        };
        match not_read().find(is_there) {
            Some(version) => {
                self.count(&[("record_other_version", 1)]);
                LookupMiss::OtherVersion(version)
            }
            None => LookupMiss::NoRecord,
        }
    }

    fn first_that_holds(
        &self,
        (path, file, bytes): (&Path, &File, &[u8]),
        key: &Key,
        at: WorkDir<'_>,
        suits: Suits<'_>,
        meanwhile: impl FnOnce(&Outcome) + Send,
    ) -> Result<Lookup, RecordError> {
        let mut nearest = None;
        let mut meanwhile = Some(meanwhile);
        for (index, stored) in variants(bytes, Some(key))?.enumerate() {
            let stored = stored?;
            let Some(manifest) = stored.manifest()?.real(at.path_map) else {
                continue;
            };
            let outcome = stored.outcome()?;
            if let Err(difference) = suits(&outcome) {
                nearest = nearest.or(difference);
                continue;
            }
            let suspect = nearest.as_ref().and_then(Difference::changed_file);
            if suspect.is_some_and(|file| manifest.differs_in(file, at.directory, Some(self))) {
                continue;
            }
            let examine = || manifest.check_for_keeping(at.directory, Some(self));
            let checked = match meanwhile.take() {
                Some(meanwhile) => run_meanwhile(&outcome, meanwhile, examine),
                None => examine(),
            };
            let refreshed = match checked {
                Ok(refreshed) => refreshed,
                Err(difference) => {
                    nearest.get_or_insert(difference);
                    continue;
                }
            };
            if !self.options.readonly {
                match &refreshed {
                    None if index == 0 => mark_used(file),
                    // If the record stays as it is, the next look-up only takes longer.
                    _ => {
                        let refreshed = refreshed.as_ref().map(|seen| seen.fixed(at.path_map));
                        let refreshed = refreshed.as_deref();
                        drop(self.bring_forward(path, bytes, key, &stored, refreshed, &outcome));
                    }
                }
            }
            return Ok(Lookup::Hit(outcome, manifest));
        }
        // A record without variants contains no result.
        Ok(Lookup::Miss(
            nearest.map_or(LookupMiss::NoRecord, |difference| {
                LookupMiss::Differs(vec![difference])
            }),
        ))
    }

    /// Rewrites a record with one variant moved to the front, and with its new manifest if there is one.
    fn bring_forward(
        &self,
        path: &Path,
        bytes: &[u8],
        key: &Key,
        stored: &Stored<'_>,
        refreshed: Option<&InputManifest>,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        let mut record = start_record(key);
        match refreshed {
            Some(manifest) => put_variant(&mut record, manifest, outcome)
                .map_err(|source| record_error(path, source))?,
            None => record.extend_from_slice(stored.whole()),
        }
        append_others(&mut record, bytes, key, stored.identity());
        self.write_whole(path, &record)
    }

    /// Stores what a run saw and its outcome. The blobs should be stored first.
    ///
    /// If two processes store under one key at once, one result may be lost.
    pub fn store(
        &self,
        level: Level,
        key: &Key,
        manifest: &InputManifest,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        self.store_mapped(level, key, PathMap::EMPTY, manifest, outcome)
    }

    /// The same for a run below mapped folders: the record contains their fixed names, and is valid wherever they are.
    pub fn store_mapped(
        &self,
        level: Level,
        key: &Key,
        path_map: &PathMap,
        manifest: &InputManifest,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        self.writable()?;
        let path = self.record_path(level, key);
        let mut record = start_record(key);
        let manifest = &*manifest.fixed(path_map);
        put_variant(&mut record, manifest, outcome)
            .map_err(|source| record_error(&path, source))?;
        // A record that cannot be read is replaced.
        if let Ok(Some((_, bytes))) = read_whole(&path) {
            append_others(&mut record, &bytes, key, identity_of(manifest, outcome));
        }
        self.write_whole(&path, &record)?;
        // This is the last of a call's files. A process that stores kernels may run for months, and may end without notice.
        if level != Level::Steps {
            self.growth.write_down();
        }
        Ok(())
    }

    /// Removes what is stored under a key.
    pub fn forget(&self, level: Level, key: &Key) {
        let path = self.record_path(level, key);
        if path.exists() {
            self.remove_bad(&path, "record_forgotten");
        }
    }

    /// The recorded runs under a key, the latest first, for shared caches. Empty if there is no record, or no intact one.
    /// Paths below mapped folders have fixed names, as in the record.
    pub fn remembered(&self, level: Level, key: &Key) -> Vec<Variant> {
        match self.read_record(level, key) {
            Ok(Some((_, bytes))) => decode_record_of(&bytes, key).unwrap_or_default(),
            Ok(None) | Err(_) => Vec::new(),
        }
    }

    /// For every recorded run under a key, the latest first: its inputs, and everything that differs now. `look_up`
    /// reports only the first difference. Runs that are not meant for this call are left out.
    pub fn differences(
        &self,
        level: Level,
        key: &Key,
        at: WorkDir<'_>,
        suits: Suits<'_>,
    ) -> Result<Vec<(InputManifest, Vec<Difference>)>, StoreError> {
        let path = self.record_path(level, key);
        let read = self.read_record(level, key);
        let read = read.map_err(|source| StoreError::io("read", &path, source))?;
        let Some((_, bytes)) = read else {
            return Ok(Vec::new());
        };
        let of_one = |stored: Result<Stored<'_>, RecordError>| {
            let stored = stored?;
            let Some(manifest) = stored.manifest()?.real(at.path_map) else {
                return Ok(None);
            };
            let mut differences = manifest.differences(at.directory);
            match suits(&stored.outcome()?) {
                Ok(()) => {}
                Err(Some(difference)) => differences.push(difference),
                // This run was not meant for this call.
                Err(None) => return Ok(None),
            }
            Ok(Some((manifest, differences)))
        };
        variants(&bytes, Some(key))
            .and_then(|all| {
                all.filter_map(|stored| of_one(stored).transpose())
                    .collect()
            })
            .map_err(|source| record_error(&path, source))
    }
}

/// With fewer bytes of outputs, a thread costs as much as it saves.
const WORTH_A_THREAD: u64 = 256 << 10;

/// Runs `meanwhile` with the outcome on another thread during `examine`, if that saves time.
fn run_meanwhile<T>(
    outcome: &Outcome,
    meanwhile: impl FnOnce(&Outcome) + Send,
    examine: impl FnOnce() -> T,
) -> T {
    let bytes: u64 = outcome.outputs.iter().map(|o| o.digest.size).sum();
    if bytes < WORTH_A_THREAD {
        return examine();
    }
    std::thread::scope(|scope| {
        let work = || meanwhile(outcome);
        // Without the thread, the caller prepares after the check.
        drop(std::thread::Builder::new().spawn_scoped(scope, work));
        examine()
    })
}

/// Whether a record's file is intact and has the name of its key.
pub(super) fn verify(path: &Path) -> std::io::Result<bool> {
    let Some((_, bytes)) = read_whole(path)? else {
        return Ok(true);
    };
    let hex = path.file_name().and_then(|name| name.to_str());
    let key = hex.and_then(crate::digest::from_hex).map(Key);
    Ok(key.is_some_and(|key| {
        variants(&bytes, Some(&key)).is_ok_and(|mut all| {
            all.all(|stored| stored.and_then(|stored| stored.decode()).is_ok())
        })
    }))
}

/// Appends the intact variants of a record, except the one that saw `identity`, as long as they fit.
fn append_others(record: &mut Vec<u8>, bytes: &[u8], key: &Key, identity: u64) {
    let Ok(all) = variants(bytes, Some(key)) else {
        return;
    };
    let others = all.flatten().filter(|stored| stored.identity() != identity);
    for stored in others.take(MOST_VARIANTS - 1) {
        record.extend_from_slice(stored.whole());
    }
}

fn record_error(path: &Path, source: RecordError) -> StoreError {
    StoreError::Record {
        path: path.to_path_buf(),
        source,
    }
}
