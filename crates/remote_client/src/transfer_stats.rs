//! Bytes and times of transfers between us and a cluster.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Transfers of at least this size are timed. In smaller ones most of the time is latency.
const MUCH: u64 = 256 << 10;

/// Bytes of blobs, and how long they took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStats {
    /// To it: inputs, and what says what to do with them.
    pub sent: u64,
    /// From it: outputs, and what tools said.
    pub received: u64,
    /// Time of the transfers that were long enough to be timed.
    pub took: Duration,
    /// The bytes of those.
    pub timed: u64,
}

impl TransferStats {
    /// Counts a transfer of `bytes` from `since` until now, if it is long enough.
    pub fn time(&mut self, bytes: u64, since: Instant) {
        if bytes >= MUCH {
            self.timed += bytes;
            self.took += since.elapsed();
        }
    }

    /// Adds the transfers of another command.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.took += other.took;
        self.timed += other.timed;
    }
}
