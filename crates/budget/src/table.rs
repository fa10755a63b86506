//! The board while its lock is held: seats to read and change, and which waiters to wake afterwards.

use crate::record::{Header, Record, SEATS, SIZE, SeatState};

/// All seats, and what was changed.
#[derive(Debug)]
pub struct SeatTable {
    /// Before the seats.
    pub header: Header,
    was: Option<Header>,
    records: Vec<Record>,
    changed: Vec<usize>,
    to_wake: Vec<usize>,
}

impl SeatTable {
    /// An empty table with the header of the file, if that has one, and room for some seats.
    pub fn new(header: Option<Header>, room: usize) -> Self {
        Self {
            header: header.unwrap_or_default(),
            was: header,
            records: Vec::with_capacity(room),
            changed: Vec::new(),
            to_wake: Vec::new(),
        }
    }

    /// Adds the next seats from their bytes.
    pub fn read_seats(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks_exact(SIZE) {
            if let Ok(bytes) = bytes.try_into() {
                let record = Record::decode(bytes, self.records.len());
                self.records.push(record);
            }
        }
    }

    /// All seats in their order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The claim on `seat`, if it is the one with this ticket.
    pub fn claim(&self, seat: usize, ticket: u64) -> Option<&Record> {
        self.records
            .get(seat)
            .filter(|r| r.ticket == ticket && r.state != SeatState::Free)
    }

    /// The record of `seat`, to change it.
    pub fn change(&mut self, seat: usize) -> &mut Record {
        if seat >= self.records.len() {
            self.records.resize(seat + 1, Record::default());
        }
        if !self.changed.contains(&seat) {
            self.changed.push(seat);
        }
        &mut self.records[seat]
    }

    /// Frees `seat`.
    pub fn free(&mut self, seat: usize) {
        *self.change(seat) = Record::default();
    }

    /// The free seats, lowest first, so that the used part stays short.
    pub fn free_seats(&self) -> impl Iterator<Item = usize> + use<> {
        let inside = self.records.iter().enumerate();
        let inside = inside
            .filter(|(_, r)| r.state == SeatState::Free)
            .map(|(i, _)| i);
        // A copy, so that the caller may change the table on the way.
        let found: Vec<usize> = inside.collect();
        found.into_iter().chain(self.records.len()..SEATS)
    }

    /// A ticket that no other claim has or had, even if the header and its count were lost.
    pub fn next_ticket(&mut self, now: u64) -> u64 {
        self.header.ticket = self.header.ticket.saturating_add(1).max(now);
        self.header.ticket
    }

    /// Notes that the owner of `seat` is to be woken when the table is written.
    pub fn wake(&mut self, seat: usize) {
        if !self.to_wake.contains(&seat) {
            self.to_wake.push(seat);
        }
    }

    /// Notes that the owner of `seat` is awake, because it is changing the table.
    pub fn note_awake(&mut self, seat: usize) {
        self.to_wake.retain(|&other| other != seat);
    }

    /// The seats to wake.
    pub fn take_to_wake(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.to_wake)
    }

    /// The changed seats' bytes.
    pub fn changes(&self) -> impl Iterator<Item = (usize, [u8; SIZE])> {
        self.changed
            .iter()
            .map(|&seat| (seat, self.records[seat].encode(seat)))
    }

    /// The header's bytes, if they are not what the file has.
    pub fn header_change(&mut self) -> Option<[u8; SIZE]> {
        let used = self
            .records
            .iter()
            .rposition(|r| r.state != SeatState::Free);
        self.header.used = used.map_or(0, |last| last as u64 + 1);
        (self.was != Some(self.header)).then(|| self.header.encode())
    }
}
