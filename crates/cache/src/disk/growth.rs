//! How much a store has grown, written down once for many entries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use super::counters::Tally;

/// How much a store has grown, written down together with what it grew by before: a build stores some forty files.
///
/// A process that is killed loses at most [`GrowthLog::MOST`] bytes of the count, and the next collection corrects it.
#[derive(Debug)]
pub(super) struct GrowthLog {
    tally: Tally,
    bytes: AtomicI64,
    entries: AtomicI64,
}

impl GrowthLog {
    /// Bytes that may wait to be written down.
    const MOST: i64 = 16 << 20;

    pub(super) fn new(tally: Tally) -> GrowthLog {
        GrowthLog {
            tally,
            bytes: AtomicI64::new(0),
            entries: AtomicI64::new(0),
        }
    }

    /// The store has this many more bytes and entries.
    pub(super) fn add(&self, bytes: i64, entries: i64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes).unsigned_abs() >= Self::MOST.unsigned_abs() {
            self.write_down();
        }
    }

    /// All that every process wrote down, and what this one has grown by.
    pub(super) fn sums(&self) -> BTreeMap<String, i64> {
        self.write_down();
        self.tally.sums()
    }

    /// Writes down what waits.
    pub(super) fn write_down(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let entries = self.entries.swap(0, Ordering::Relaxed);
        if bytes != 0 || entries != 0 {
            self.tally.add(&[("bytes", bytes), ("entries", entries)]);
        }
    }
}

impl Drop for GrowthLog {
    fn drop(&mut self) {
        self.write_down();
    }
}
