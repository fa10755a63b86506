//! One seat of the board, and its form in the file: 256 bytes with a checksum.
//!
//! A record whose checksum does not agree is a free seat: half written, damaged, or of another place in the file. The
//! checksum protects against accidents, not against attacks.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::kind::CommandKind;
use crate::label::Label;

/// Bytes of a record.
pub const SIZE: usize = 256;
/// Seats of a board.
pub const SEATS: usize = 4096;

/// The state of a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeatState {
    /// Not taken.
    #[default]
    Free,
    /// A claim that waits.
    Waiting,
    /// A claim that was granted.
    Running,
}

/// Flags of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// Granted within an ancestor's claim, and not counted.
    pub nested: bool,
    /// Running, but its processes are stopped: its slots are not counted.
    pub suspended: bool,
    /// Waiting, but its process is stopped: it is passed over.
    pub paused: bool,
    /// Granted only when nothing else runs.
    pub alone: bool,
    /// Its process has become the tool; no process looks after the claim.
    pub kept: bool,
    /// Its owner watches the other owners while it waits.
    pub watch: bool,
    /// Its owner is to stop the tool and ask again.
    pub evict: bool,
}

impl Flags {
    fn bits(self) -> u16 {
        [
            self.nested,
            self.suspended,
            self.paused,
            self.alone,
            self.kept,
            self.watch,
            self.evict,
        ]
        .into_iter()
        .enumerate()
        .fold(0, |bits, (i, set)| bits | u16::from(set) << i)
    }

    fn from_bits(bits: u16) -> Self {
        let bit = |i: u16| bits >> i & 1 == 1;
        Self {
            nested: bit(0),
            suspended: bit(1),
            paused: bit(2),
            alone: bit(3),
            kept: bit(4),
            watch: bit(5),
            evict: bit(6),
        }
    }
}

/// One claim. Times are nanoseconds of CLOCK_BOOTTIME, which cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// The state of the seat.
    pub state: SeatState,
    /// Further state of the claim.
    pub flags: Flags,
    /// The kind of command.
    pub kind: CommandKind,
    /// CPU slots needed.
    pub slots: u32,
    /// The claimant's CPU limit: claims with this limit or a lower one never take more together.
    pub slots_limit: u32,
    /// The claimant.
    pub pid: u32,
    /// Its tool, 0 until it is known.
    pub tool: u32,
    /// When the claimant was started, in clock ticks after boot: its number alone may be reused.
    pub pid_start: u64,
    /// A number that no other claim has.
    pub ticket: u64,
    /// Which build (ninja, make, pip) it belongs to.
    pub build: u64,
    /// Memory in KiB that is expected to be needed.
    pub need_kib: u64,
    /// Memory in KiB seen in use last.
    pub now_kib: u64,
    /// The most memory in KiB seen in use.
    pub peak_kib: u64,
    /// The claimant's memory limit in KiB, like `slots_limit`.
    pub memory_limit_kib: u64,
    /// The memory that the claimant uses: 0 for the machine's, or a hash of its memory-limited cgroup.
    pub domain: u64,
    /// Milliseconds expected from here to the end of the invocation: the longest goes first.
    pub priority_ms: u64,
    /// Milliseconds expected for the command itself.
    pub expected_ms: u64,
    /// When it came to wait.
    pub arrived: u64,
    /// When it was granted, 0 before.
    pub started: u64,
    /// When it was first passed over because it did not fit, 0 before.
    pub refused: u64,
    /// When it was told to stop, 0 before.
    pub evicted: u64,
    /// Since when it waits for memory, 0 if it does not.
    pub lacked: u64,
    /// Its label in the monitor.
    pub label: Label,
}

impl Record {
    /// Whether it runs and takes part of the budget.
    pub fn counts(&self) -> bool {
        self.state == SeatState::Running && !self.flags.nested && !self.flags.suspended
    }

    /// Whether it waits for its turn.
    pub fn queues(&self) -> bool {
        self.state == SeatState::Waiting && !self.flags.paused
    }

    /// The bytes of seat `seat`.
    pub fn encode(&self, seat: usize) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        if self.state == SeatState::Free {
            return bytes;
        }
        let mut at = Writer(&mut bytes, 8);
        at.put(&[self.state as u8, self.kind.number()]);
        at.put(&self.flags.bits().to_le_bytes());
        for number in [self.slots, self.slots_limit, self.pid, self.tool] {
            at.put(&number.to_le_bytes());
        }
        for number in self.numbers() {
            at.put(&number.to_le_bytes());
        }
        at.put(&self.label.encode());
        let sum = checksum(&bytes, seat);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn numbers(&self) -> [u64; 15] {
        [
            self.pid_start,
            self.ticket,
            self.build,
            self.need_kib,
            self.now_kib,
            self.peak_kib,
            self.memory_limit_kib,
            self.domain,
            self.priority_ms,
            self.expected_ms,
            self.arrived,
            self.started,
            self.refused,
            self.evicted,
            self.lacked,
        ]
    }

    /// The record in the bytes of seat `seat`; a free seat if they hold none.
    pub fn decode(bytes: &[u8; SIZE], seat: usize) -> Self {
        let mut at = Reader(bytes, 0);
        let sum = at.u64();
        if sum != checksum(bytes, seat) {
            return Self::default();
        }
        let state = match at.u8() {
            1 => SeatState::Waiting,
            2 => SeatState::Running,
            _ => return Self::default(),
        };
        let kind = CommandKind::from_number(at.u8());
        let flags = Flags::from_bits(at.u16());
        let [slots, slots_limit, pid, tool] = std::array::from_fn(|_| at.u32());
        let numbers: [u64; 15] = std::array::from_fn(|_| at.u64());
        let label = Label::decode(&at.take());
        Self {
            state,
            flags,
            kind,
            slots,
            slots_limit,
            pid,
            tool,
            pid_start: numbers[0],
            ticket: numbers[1],
            build: numbers[2],
            need_kib: numbers[3],
            now_kib: numbers[4],
            peak_kib: numbers[5],
            memory_limit_kib: numbers[6],
            domain: numbers[7],
            priority_ms: numbers[8],
            expected_ms: numbers[9],
            arrived: numbers[10],
            started: numbers[11],
            refused: numbers[12],
            evicted: numbers[13],
            lacked: numbers[14],
            label,
        }
    }
}

/// The header before the seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Seats from here on were never used or are free.
    pub used: u64,
    /// The last ticket given out.
    pub ticket: u64,
    /// The time of the last check that all claims are alive.
    pub checked: u64,
    /// The last seat that was looked at in the round over waiting ones.
    pub cursor: u64,
    /// When a claim was last told to stop.
    pub evicted: u64,
    /// The memory that was available then, in KiB.
    pub evicted_available: u64,
}

/// The start value of the header's checksum: no seat has this number.
const HEADER: usize = usize::MAX;
const MAGIC: u64 = u64::from_le_bytes(*b"warpcc b");

impl Header {
    /// Its bytes.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut at = Writer(&mut bytes, 8);
        for number in [
            MAGIC,
            self.used,
            self.ticket,
            self.checked,
            self.cursor,
            self.evicted,
            self.evicted_available,
        ] {
            at.put(&number.to_le_bytes());
        }
        let sum = checksum(&bytes, HEADER);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header in these bytes, if they hold one.
    pub fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let mut at = Reader(bytes, 0);
        if at.u64() != checksum(bytes, HEADER) || at.u64() != MAGIC {
            return None;
        }
        Some(Self {
            used: at.u64().min(SEATS as u64),
            ticket: at.u64(),
            checked: at.u64(),
            cursor: at.u64(),
            evicted: at.u64(),
            evicted_available: at.u64(),
        })
    }
}

fn checksum(bytes: &[u8; SIZE], seat: usize) -> u64 {
    xxh3_64_with_seed(&bytes[8..], seat as u64)
}

struct Writer<'a>(&'a mut [u8; SIZE], usize);

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.0[self.1..self.1 + bytes.len()].copy_from_slice(bytes);
        self.1 += bytes.len();
    }
}

struct Reader<'a>(&'a [u8; SIZE], usize);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        taken.copy_from_slice(&self.0[self.1..self.1 + N]);
        self.1 += N;
        taken
    }

    fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        Record {
            state: SeatState::Running,
            flags: Flags {
                kept: true,
                evict: true,
                ..Flags::default()
            },
            kind: CommandKind::Ptxas,
            slots: 2,
            slots_limit: 16,
            pid: 77,
            tool: 78,
            pid_start: 1,
            ticket: 2,
            build: 3,
            need_kib: 4,
            now_kib: 5,
            peak_kib: 6,
            memory_limit_kib: 7,
            domain: 8,
            priority_ms: 9,
            expected_ms: 10,
            arrived: 11,
            started: 12,
            refused: 13,
            evicted: 14,
            lacked: 15,
            label: Label::new("src/a.cu sm_90"),
        }
    }

    #[test]
    fn comes_back_as_it_went() {
        let record = sample();
        let bytes = record.encode(3);
        assert_eq!(Record::decode(&bytes, 3), record);
        assert_eq!(Record::decode(&bytes, 4), Record::default(), "another seat");
        let header = Header {
            used: 5,
            ticket: 6,
            ..Header::default()
        };
        assert_eq!(Header::decode(&header.encode()), Some(header));
        assert_eq!(Header::decode(&bytes), None);
    }

    #[test]
    fn every_damaged_byte_frees_the_seat() {
        let bytes = sample().encode(0);
        for i in 0..SIZE {
            let mut bytes = bytes;
            bytes[i] ^= 0x40;
            assert_eq!(Record::decode(&bytes, 0), Record::default(), "byte {i}");
        }
        assert_eq!(Record::decode(&[0; SIZE], 0), Record::default());
    }
}
