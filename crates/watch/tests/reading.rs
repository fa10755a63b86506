//! Reading a log: lost records are admitted, and no bytes make it panic.
#![allow(clippy::unwrap_used)] // Helpers too: the setting of clippy.toml covers test functions only.

use proptest::prelude::*;
use warpcc_watch::{LogError, read_log};

fn record(kind: u8, owner: u32, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    [
        &[kind],
        &owner.to_le_bytes()[..],
        &length.to_le_bytes(),
        payload,
        b"\n",
    ]
    .concat()
}

fn count(count: u32) -> [u8; 4] {
    count.to_le_bytes()
}

fn blind(records: &[Vec<u8>]) -> Option<String> {
    read_log(&records.concat()).unwrap().blind
}

#[test]
fn a_whole_log_is_trusted_and_a_part_is_not() {
    let start = record(b'X', 7, b"/bin/cc\0/work");
    let read = record(b'R', 7, b"a.c");
    let end = record(b'E', 7, &count(2));
    assert_eq!(blind(&[start.clone(), read.clone(), end.clone()]), None);
    assert!(
        blind(&[start.clone(), end.clone()])
            .unwrap()
            .contains("lost")
    );
    assert!(
        blind(&[start.clone(), read.clone()])
            .unwrap()
            .contains("did not end")
    );
    assert!(
        blind(&[start.clone(), read.clone(), end[..5].to_vec()])
            .unwrap()
            .contains("torn")
    );
    assert!(
        blind(&[start, read, end, record(b'R', 8, b"b")])
            .unwrap()
            .contains("before it started")
    );
    assert_eq!(read_log(b""), Err(LogError::Empty));
    assert_eq!(read_log(b"#!/bin/sh\n"), Err(LogError::NotALog));
}

#[test]
fn a_program_announced_must_start() {
    let start = record(b'X', 7, b"/bin/cc\0/work");
    let announced = record(b'P', 7, &[&count(8)[..], b"/bin/as"].concat());
    let end = record(b'E', 7, &count(2));
    let child = [
        record(b'X', 8, b"/bin/as\0/work"),
        record(b'E', 8, &count(1)),
    ]
    .concat();
    assert_eq!(
        blind(&[start.clone(), announced.clone(), end.clone(), child.clone()]),
        None
    );
    // The parent's records may come after the child's.
    assert_eq!(
        blind(&[start.clone(), child, announced.clone(), end.clone()]),
        None
    );
    assert!(
        blind(&[start.clone(), announced.clone(), end.clone()])
            .unwrap()
            .contains("/bin/as")
    );
    let failed = record(b'Q', 7, &count(8));
    assert_eq!(
        blind(&[start, announced, failed, record(b'E', 7, &count(3))]),
        None
    );
}

#[test]
fn paths_of_a_process_elsewhere_become_absolute() {
    let log = [
        record(b'X', 7, b"/bin/sh\0/work"),
        record(b'R', 7, b"a"),
        record(b'C', 7, b"/work/sub"),
        record(b'M', 7, b"b"),
        record(b'S', 7, b"/c"),
        record(b'E', 7, &count(5)),
    ];
    let seen = read_log(&log.concat()).unwrap();
    assert_eq!(seen.blind, None);
    assert!(seen.read.contains("a".as_ref() as &std::path::Path));
    assert!(
        seen.missing
            .contains("/work/sub/b".as_ref() as &std::path::Path)
    );
    assert!(seen.found.contains("/c".as_ref() as &std::path::Path));
}

fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"XFCLRWDSMPNQEUz".to_vec());
    (
        kind,
        0_u32..4,
        prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..12),
    )
        .prop_map(|(kind, owner, payload)| record(kind, owner, &payload))
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_log(&bytes);
    }

    #[test]
    fn no_records_panic(records in prop::collection::vec(any_record(), 0..20), cut in 0_usize..40) {
        let mut log = record(b'X', 1, b"/bin/cc\0/work");
        log.extend(records.concat());
        log.truncate(log.len().saturating_sub(cut).max(1));
        let _ = read_log(&log);
    }

    #[test]
    fn cutting_a_log_short_is_noticed(cut in 1_usize..60) {
        let log = [record(b'X', 1, b"/bin/cc\0/work"), record(b'R', 1, b"/usr/include/stdio.h"), record(b'E', 1, &count(2))];
        let log = log.concat();
        if let Ok(seen) = read_log(&log[..log.len().saturating_sub(cut)]) {
            prop_assert!(seen.blind.is_some());
        }
    }
}
