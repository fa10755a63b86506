//! The format of a log: records one after the other. Each can be found even after a damaged one.
//!
//! ```text
//! log    = record*
//! record = magic[8] length(u32) checksum(u64, XXH3 of the payload, seeded with the length) payload
//! ```
//!
//! Integers are little-endian; the payload is an [`InvocationRecord`] in postcard's form. The magic
//! holds the version: records of another version are passed over. There is no head, so that the
//! first writer is like any other. A record is appended with one `write`, which Linux keeps in
//! one piece among appenders on a local file system; where it was torn all the same (a full
//! disk, a crash, a network share) its checksum or its length tells, and reading goes on at
//! the next magic.

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::record::InvocationRecord;

/// Changed with every change of what a record holds.
const MAGIC: &[u8; 8] = b"WCCREP02";
const HEAD: usize = 8 + 4 + 8;
/// The longest record. A larger length was not written by warpcc.
const LONGEST: usize = 8 << 20;

/// The contents of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The records, in the order they were appended.
    pub records: Vec<InvocationRecord>,
    /// The part that could not be read.
    pub damage: Damage,
}

/// The damaged part of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damage {
    /// Bytes that belong to no sound record.
    pub bytes: u64,
    /// The number of damaged places.
    pub places: u32,
    /// Whether the last place is at the end: a record may be on its way.
    pub unfinished: bool,
}

impl Damage {
    /// Whether there is something to warn about. A record that is being appended is not.
    pub fn is_notable(&self) -> bool {
        self.places > u32::from(self.unfinished)
    }

    fn add(&mut self, bytes: usize) {
        if bytes > 0 {
            self.bytes += bytes as u64;
            self.places += 1;
        }
    }
}

/// The record as one piece of bytes; `None` where it is too long to be kept.
pub fn encode(invocation: &InvocationRecord) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4096);
    bytes.extend_from_slice(&[0; HEAD]);
    let mut bytes = postcard::to_extend(invocation, bytes).ok()?;
    let length = bytes.len() - HEAD;
    if length > LONGEST {
        return None;
    }
    let length = u32::try_from(length).ok()?;
    let checksum = checksum_of(&bytes[HEAD..]);
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    bytes[12..HEAD].copy_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

/// Reads all intact records. It never fails, and trusts no length.
pub fn decode(bytes: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let finder = memmem::Finder::new(MAGIC);
    let mut at = 0;
    // Where the first byte stands that belongs to no record so far.
    let mut lost_from = 0;
    while let Some(found) = finder.find(&bytes[at..]) {
        let start = at + found;
        match record_at(&bytes[start..]) {
            Some((invocation, length)) => {
                reading.damage.add(start - lost_from);
                reading.records.push(invocation);
                at = start + length;
                lost_from = at;
            }
            // A magic inside a torn record, or a torn record: the next one may be whole.
            None => at = start + MAGIC.len(),
        }
    }
    reading.damage.add(bytes.len() - lost_from);
    reading.damage.unfinished = lost_from < bytes.len();
    reading
}

fn record_at(bytes: &[u8]) -> Option<(InvocationRecord, usize)> {
    let (length, rest) = bytes.get(MAGIC.len()..)?.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let payload = rest.get(..length)?;
    if checksum_of(payload) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let invocation = postcard::from_bytes(payload).ok()?;
    Some((invocation, HEAD + length))
}

fn checksum_of(payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, payload.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: u64) -> InvocationRecord {
        InvocationRecord {
            id,
            build: "ninja-1".into(),
            args: vec!["nvcc".into(), "-c".into(), format!("k{id}.cu")],
            ..InvocationRecord::default()
        }
    }

    fn log(ids: &[u64]) -> Vec<u8> {
        let records = ids.iter().map(|id| encode(&call(*id)).expect("short"));
        records.flatten().collect()
    }

    fn ids(reading: &Reading) -> Vec<u64> {
        reading.records.iter().map(|one| one.id).collect()
    }

    #[test]
    fn records_come_back_in_order() {
        let reading = decode(&log(&[1, 2, 3]));
        assert_eq!(ids(&reading), [1, 2, 3]);
        assert_eq!(reading.records[1], call(2));
        assert_eq!(reading.damage, Damage::default());
        assert_eq!(decode(b""), Reading::default());
    }

    #[test]
    fn a_record_on_its_way_is_no_damage_to_warn_about() {
        let whole = log(&[1, 2]);
        let first = encode(&call(1)).expect("short").len();
        for end in first + 1..whole.len() {
            let reading = decode(&whole[..end]);
            assert_eq!(ids(&reading), [1], "cut at {end}");
            assert!(reading.damage.unfinished && !reading.damage.is_notable());
        }
    }

    #[test]
    fn behind_a_torn_record_reading_goes_on() {
        let mut bytes = log(&[1]);
        let torn = encode(&call(2)).expect("short");
        bytes.extend_from_slice(&torn[..torn.len() - 5]);
        bytes.extend_from_slice(&log(&[3, 4]));
        let reading = decode(&bytes);
        assert_eq!(ids(&reading), [1, 3, 4]);
        assert_eq!(reading.damage.bytes, torn.len() as u64 - 5);
        assert!(reading.damage.is_notable() && !reading.damage.unfinished);
    }

    #[test]
    fn a_magic_within_a_record_misleads_nobody() {
        let mut odd = call(1);
        odd.args.push("WCCREP02WCCREP02".into());
        let mut bytes = encode(&odd).expect("short");
        bytes.extend_from_slice(&log(&[2]));
        assert_eq!(ids(&decode(&bytes)), [1, 2]);
        // Its own head is damaged: the bytes inside must not be taken for a record.
        bytes[0] = b'X';
        assert_eq!(ids(&decode(&bytes)), [2]);
    }

    #[test]
    fn another_version_is_passed_over() {
        let mut bytes = log(&[1]);
        bytes[7] = b'9';
        bytes.extend_from_slice(&log(&[2]));
        assert_eq!(ids(&decode(&bytes)), [2]);
    }

    proptest! {
        #[test]
        fn any_byte_may_be_wrong(at in 0..400usize, value: u8) {
            let mut bytes = log(&[1, 2, 3, 4]);
            let at = at % bytes.len();
            let changed = bytes[at] != value;
            bytes[at] = value;
            let reading = decode(&bytes);
            // One record is lost at most, and what is read is true.
            prop_assert_eq!(reading.records.len(), 4 - usize::from(changed));
            for record in &reading.records {
                prop_assert_eq!(record, &call(record.id));
            }
        }

        #[test]
        fn rubbish_is_survived(bytes: Vec<u8>) {
            let reading = decode(&bytes);
            prop_assert_eq!(reading.damage.bytes, bytes.len() as u64);
        }
    }
}
