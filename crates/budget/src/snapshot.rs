//! The board, to read only.

use std::io;

use crate::clock::now;
use crate::record::{Record, SeatState};
use crate::seat;
use crate::shared::Shared;

/// All claims at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// When, in nanoseconds of CLOCK_BOOTTIME, as in the records.
    pub taken: u64,
    /// Claims of living processes, in no order.
    pub claims: Vec<Record>,
    /// KiB that can be had without swapping.
    pub available_kib: u64,
}

impl Snapshot {
    /// Reads the board without its lock. A claim that is just being written is left out.
    pub(crate) fn take(shared: &Shared) -> io::Result<Self> {
        let table = shared.file.peek()?;
        let claims = table.records().iter().enumerate();
        let claims = claims
            .filter(|(seat, r)| r.state != SeatState::Free && seat::is_held(&shared.folder, *seat))
            .map(|(_, r)| *r);
        Ok(Self {
            taken: now(),
            claims: claims.collect(),
            available_kib: shared.memory().available_kib,
        })
    }

    /// The running claims.
    pub fn running(&self) -> impl Iterator<Item = &Record> {
        self.claims.iter().filter(|r| r.state == SeatState::Running)
    }

    /// The waiting claims.
    pub fn waiting(&self) -> impl Iterator<Item = &Record> {
        self.claims.iter().filter(|r| r.state == SeatState::Waiting)
    }

    /// Slots in use: those that count.
    pub fn slots(&self) -> u64 {
        let counted = self.claims.iter().filter(|r| r.counts());
        counted.map(|r| u64::from(r.slots)).sum()
    }
}
