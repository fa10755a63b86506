//! What moved between us and a cluster.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A transfer is timed from here: of smaller ones the way is most.
const MUCH: u64 = 256 << 10;

/// Bytes of blobs, and how long they took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// To it: inputs, and what says what to do with them.
    pub sent: u64,
    /// From it: outputs, and what tools said.
    pub received: u64,
    /// How long that took, the calls that moved much.
    pub took: Duration,
    /// The bytes of those.
    pub timed: u64,
}

impl Moved {
    /// So many bytes were on their way from `since` until now.
    pub fn time(&mut self, bytes: u64, since: Instant) {
        if bytes >= MUCH {
            self.timed += bytes;
            self.took += since.elapsed();
        }
    }

    /// Together with what another command moved.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.took += other.took;
        self.timed += other.timed;
    }
}
