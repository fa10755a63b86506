//! Records how much a store has grown, once for many entries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use super::counters::CounterFile;

/// Collects how much a store has grown and records it from time to time: a build stores some forty files.
///
/// If a process is killed, at most [`GrowthLog::MOST`] bytes of the count are lost, and the next collection corrects it.
#[derive(Debug)]
pub(super) struct GrowthLog {
    counters: CounterFile,
    bytes: AtomicI64,
    entries: AtomicI64,
}

impl GrowthLog {
    /// The most bytes that may be unrecorded.
    const MOST: i64 = 16 << 20;

    pub(super) fn new(counters: CounterFile) -> GrowthLog {
        GrowthLog {
            counters,
            bytes: AtomicI64::new(0),
            entries: AtomicI64::new(0),
        }
    }

    /// Adds bytes and entries of the store.
    pub(super) fn add(&self, bytes: i64, entries: i64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes).unsigned_abs() >= Self::MOST.unsigned_abs() {
            self.write_down();
        }
    }

    /// The sums that all processes recorded, plus this process's unrecorded growth.
    pub(super) fn sums(&self) -> BTreeMap<String, i64> {
        self.write_down();
        self.counters.sums()
    }

    /// Records the growth so far.
    pub(super) fn write_down(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let entries = self.entries.swap(0, Ordering::Relaxed);
        if bytes != 0 || entries != 0 {
            self.counters.add(&[("bytes", bytes), ("entries", entries)]);
        }
    }
}

impl Drop for GrowthLog {
    fn drop(&mut self) {
        self.write_down();
    }
}
