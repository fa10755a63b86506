//! Reading a log: lost records are admitted, and no bytes make it panic.
#![allow(clippy::unwrap_used)] // Helpers too: the setting of clippy.toml covers test functions only.

use proptest::prelude::*;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use warpcc_watch::{LogError, Observed, read_log};

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

/// A program that begins: the real one at that path, so that it is the file that was announced.
fn start(owner: u32, program: &str) -> Vec<u8> {
    let found = std::fs::metadata(program).unwrap();
    let mut payload = found.dev().to_le_bytes().to_vec();
    payload.extend(found.ino().to_le_bytes());
    payload.extend(program.as_bytes());
    payload.extend(b"\0/work");
    record(b'X', owner, &payload)
}

/// A file that was read; of what it was then nothing is known.
fn read_of(owner: u32, path: &str) -> Vec<u8> {
    record(b'R', owner, &[&[0; 52], path.as_bytes()].concat())
}

fn read(bytes: &[u8]) -> Result<Observed, LogError> {
    read_log(bytes, Path::new(FIRST), &|_| false)
}

const FIRST: &str = "/bin/sh";
const SECOND: &str = "/usr/bin/env";

fn untracked(records: &[Vec<u8>]) -> Option<String> {
    read(&records.concat()).unwrap().untracked
}

#[test]
fn a_whole_log_is_trusted_and_a_part_is_not() {
    let start = start(7, FIRST);
    let read = read_of(7, "a.c");
    let end = record(b'E', 7, &count(2));
    assert_eq!(untracked(&[start.clone(), read.clone(), end.clone()]), None);
    assert!(
        untracked(&[start.clone(), end.clone()])
            .unwrap()
            .contains("lost")
    );
    assert!(
        untracked(&[start.clone(), read.clone()])
            .unwrap()
            .contains("did not finish")
    );
    assert!(
        untracked(&[start.clone(), read.clone(), end[..5].to_vec()])
            .unwrap()
            .contains("incomplete")
    );
    assert!(
        untracked(&[start, read, end, read_of(8, "b")])
            .unwrap()
            .contains("before it started")
    );
    assert_eq!(crate::read(b""), Err(LogError::Empty));
    assert_eq!(crate::read(b"#!/bin/sh\n"), Err(LogError::NotALog));
}

#[test]
fn a_program_announced_must_start() {
    let start = start(7, FIRST);
    let announced = record(b'P', 7, &[&count(8)[..], SECOND.as_bytes()].concat());
    let end = record(b'E', 7, &count(2));
    let child = [crate::start(8, SECOND), record(b'E', 8, &count(1))].concat();
    assert_eq!(
        untracked(&[start.clone(), announced.clone(), end.clone(), child.clone()]),
        None
    );
    // The parent's records may come after the child's.
    assert_eq!(
        untracked(&[start.clone(), child, announced.clone(), end.clone()]),
        None
    );
    assert!(
        untracked(&[start.clone(), announced.clone(), end.clone()])
            .unwrap()
            .contains(SECOND)
    );
    // Another program than the one announced: a static one stood between.
    let other = [crate::start(8, "/bin/ls"), record(b'E', 8, &count(1))].concat();
    let announced_end = [announced.clone(), end.clone()].concat();
    assert!(
        untracked(&[start.clone(), announced_end.clone(), other])
            .unwrap()
            .contains("could not be watched")
    );
    // A program that was not announced.
    let stranger = [crate::start(9, SECOND), record(b'E', 9, &count(1))].concat();
    assert!(
        untracked(&[start.clone(), announced_end, child_of(8), stranger])
            .unwrap()
            .contains("what started")
    );
    let failed = record(b'Q', 7, &count(8));
    assert_eq!(
        untracked(&[start, announced, failed, record(b'E', 7, &count(3))]),
        None
    );
}

/// A `vfork` child is in its parent's memory, so the parent writes down later what the child became.
#[test]
fn a_parent_may_log_after_its_child_became_another_program() {
    let start = start(7, SECOND);
    let announced = record(b'P', 7, &[&count(8)[..], FIRST.as_bytes()].concat());
    let failed = record(b'Q', 7, &count(8));
    let becomes = record(b'P', 8, &[&count(8)[..], SECOND.as_bytes()].concat());
    let ends = |owner, records| record(b'E', owner, &count(records));
    let child = [crate::start(8, FIRST), becomes, ends(8, 2), child_of(8)].concat();
    let program = Path::new(SECOND);
    let untracked = |records: &[Vec<u8>]| {
        read_log(&records.concat(), program, &|_| false)
            .unwrap()
            .untracked
    };
    let log = [start.clone(), child.clone(), announced.clone(), ends(7, 2)];
    assert_eq!(untracked(&log), None);
    // The first attempt failed, as in a search for the program.
    let earlier = record(b'P', 7, &[&count(8)[..], b"/bin/none"].concat());
    let log = [
        start.clone(),
        child.clone(),
        earlier,
        failed,
        announced,
        ends(7, 4),
    ];
    assert_eq!(untracked(&log), None);
    let log = [start, child, ends(7, 1)];
    assert!(untracked(&log).is_some());
}

#[test]
fn paths_of_a_process_elsewhere_become_absolute() {
    let log = [
        start(7, FIRST),
        read_of(7, "a"),
        record(b'C', 7, b"/work/sub"),
        record(b'M', 7, b"b"),
        record(b'S', 7, b"/c"),
        record(b'E', 7, &count(5)),
    ];
    let seen = read(&log.concat()).unwrap();
    assert_eq!(seen.untracked, None);
    assert!(seen.read.contains_key(OsStr::new("a")));
    assert!(seen.missing.contains(OsStr::new("/work/sub/b")));
    assert!(seen.found.contains(OsStr::new("/c")));
}

/// A child that begins and ends.
fn child_of(pid: u32) -> Vec<u8> {
    [start(pid, SECOND), record(b'E', pid, &count(1))].concat()
}

fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"XFCLRWDSMKOYZVJjAPNQEUz".to_vec());
    (
        kind,
        0_u32..4,
        prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..80),
    )
        .prop_map(|(kind, owner, payload)| record(kind, owner, &payload))
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn no_records_panic(records in prop::collection::vec(any_record(), 0..20), cut in 0_usize..40) {
        let mut log = start(1, FIRST);
        log.extend(records.concat());
        log.truncate(log.len().saturating_sub(cut).max(1));
        let _ = read(&log);
    }

    #[test]
    fn cutting_a_log_short_is_noticed(cut in 1_usize..60) {
        let log = [start(1, FIRST), read_of(1, "/usr/include/stdio.h"), record(b'E', 1, &count(2))];
        let log = log.concat();
        if let Ok(seen) = read(&log[..log.len().saturating_sub(cut)]) {
            prop_assert!(seen.untracked.is_some());
        }
    }
}

#[test]
fn a_stat_counts_unless_the_program_is_known() {
    let mut told = [0; 52];
    told[16] = 3;
    let log = [
        start(7, FIRST),
        record(b'I', 7, &[&told[..], b"notes"].concat()),
        record(b'H', 7, b""),
        record(b'E', 7, &count(3)),
    ]
    .concat();
    let seen = read(&log).unwrap();
    assert_eq!(seen.untracked, None);
    assert_eq!(seen.looked[OsStr::new("notes")].size, 3);
    assert!(seen.asked_directory.contains(Path::new(FIRST)));
    let known = read_log(&log, Path::new(FIRST), &|_| true).unwrap();
    assert!(known.looked.is_empty());
    assert_eq!(known.looked_by_known[OsStr::new("notes")].size, 3);
    assert!(known.found.contains(OsStr::new("notes")));
}

#[test]
fn of_known_programs_it_counts_that_they_asked_for_the_local_time() {
    let records = |kind| {
        let log = [
            start(7, FIRST),
            record(kind, 7, b""),
            record(b'E', 7, &count(2)),
        ];
        log.concat()
    };
    let asked = |kind, known| {
        let observed = read_log(&records(kind), Path::new(FIRST), &|_| known).unwrap();
        assert_eq!(observed.untracked, None);
        observed.asked_time
    };
    assert!(asked(b't', true));
    assert!(!asked(b't', false));
    assert!(!asked(b'i', true));
}
