//! Counts of all processes in a cache's folder: how often images were found there, and what others cost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warpcc_cache::DiskStore;

use crate::counts::{Counters, Counts};
use crate::found::Found;
use crate::settings::CacheSettings;

const DISK: &str = "kernels.disk";
const SHARED: &str = "kernels.shared";
const MADE: &str = "kernels.made";
const MADE_MICROS: &str = "kernels.made_us";
const FOUND_MICROS: &str = "kernels.found_us";

/// A hit on disk takes 50 us, so not each is written by itself.
const HITS_AT_ONCE: u64 = 16;

/// What all processes with one folder have counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Images found in a folder or a pack.
    pub disk: u64,
    /// Images found in a shared cache.
    pub shared: u64,
    /// Images that were compiled or linked.
    pub made: u64,
    /// How long compiling and linking took, failed attempts included.
    pub making: Duration,
    /// How long reading images from folders, packs and shared caches took.
    pub finding: Duration,
}

impl Usage {
    /// What is counted in the folder of `store`.
    pub fn of(store: &DiskStore) -> Self {
        let counters = store.counters();
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        Self {
            disk: count(DISK),
            shared: count(SHARED),
            made: count(MADE),
            making: Duration::from_micros(count(MADE_MICROS)),
            finding: Duration::from_micros(count(FOUND_MICROS)),
        }
    }
}

/// Counts for this process, and adds them to those in the first folder that is written to. What cannot be written is lost.
#[derive(Debug)]
pub(crate) struct UsageCounter {
    counters: Counters,
    store: Option<DiskStore>,
    /// What is not written yet: hits on disk, in shared caches, images made, the time of that, the time of hits.
    unwritten: [AtomicU64; 5],
}

impl UsageCounter {
    pub(crate) fn new(settings: &CacheSettings) -> Self {
        Self {
            counters: Counters::default(),
            store: settings.open_first_written().ok(),
            unwritten: Default::default(),
        }
    }

    /// The counts of this process.
    pub(crate) fn counts(&self) -> Counts {
        self.counters.read()
    }

    pub(crate) fn count(&self, found: Found) {
        self.counters.count(found);
        let index = match found {
            Found::Disk => 0,
            Found::Shared => 1,
            Found::Made => 2,
            Found::Memory | Found::Given => return,
        };
        let before = self.unwritten[index].fetch_add(1, Ordering::Relaxed);
        if found == Found::Made || before + 1 >= HITS_AT_ONCE {
            self.write();
        }
    }

    /// Adds the time of a compilation, whatever came of it.
    pub(crate) fn spent(&self, time: Duration) {
        self.add(3, time);
    }

    /// Adds the time of a hit that was not in memory.
    pub(crate) fn searched(&self, time: Duration) {
        self.add(4, time);
    }

    fn add(&self, index: usize, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.unwritten[index].fetch_add(micros, Ordering::Relaxed);
    }

    fn write(&self) {
        let Some(store) = &self.store else {
            return;
        };
        let names = [DISK, SHARED, MADE, MADE_MICROS, FOUND_MICROS];
        let new: Vec<(&str, u64)> = names
            .into_iter()
            .zip(&self.unwritten)
            .map(|(name, count)| (name, count.swap(0, Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        // A folder that was removed meanwhile, as a temporary one is, does not come back.
        if store.root().is_dir() {
            store.count(&new);
        }
    }
}

impl Drop for UsageCounter {
    fn drop(&mut self) {
        self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_processes_with_a_folder_count_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = CacheSettings::in_folder(folder.path());
        let usage = || Usage::of(&settings.open_first_written().expect("a store"));
        for _ in 0..2 {
            let counter = UsageCounter::new(&settings);
            counter.spent(Duration::from_millis(30));
            counter.searched(Duration::from_millis(2));
            for found in [Found::Made, Found::Shared, Found::Memory, Found::Given] {
                counter.count(found);
            }
            (0..HITS_AT_ONCE + 1).for_each(|_| counter.count(Found::Disk));
            assert_eq!(counter.counts().memory, 1);
        }
        let expected = Usage {
            disk: 2 * (HITS_AT_ONCE + 1),
            shared: 2,
            made: 2,
            making: Duration::from_millis(60),
            finding: Duration::from_millis(4),
        };
        assert_eq!(usage(), expected);
        // Without a folder the process counts for itself.
        let counter = UsageCounter::new(&CacheSettings::default());
        counter.count(Found::Made);
        assert_eq!(counter.counts().made, 1);
    }

    #[test]
    fn a_folder_that_was_removed_stays_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cache");
        std::fs::create_dir(&path).expect("a folder");
        let counter = UsageCounter::new(&CacheSettings::in_folder(&path));
        std::fs::remove_dir(&path).expect("removed");
        counter.count(Found::Made);
        drop(counter);
        assert!(!path.exists());
    }
}
