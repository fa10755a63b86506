//! Tests of when a claim is stopped for memory.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn running(started: u64) -> Record {
    Record {
        state: SeatState::Running,
        started,
        slots: 1,
        ..Record::default()
    }
}

fn reading(available_kib: u64) -> Reading {
    Reading {
        available_kib,
        by_cgroup: false,
        stalled: 0.0,
    }
}

fn low(available_kib: u64) -> Shortage {
    Shortage::new(&reading(available_kib), 1000)
}

#[test]
fn the_youngest_goes_and_the_last_stays() {
    let two = [running(5), running(9)];
    let none = Header::default();
    assert_eq!(evict(&two, &none, 20, low(1), 0), Some(1));
    assert_eq!(evict(&two[..1], &none, 20, low(1), 0), None);
}

#[test]
fn one_at_a_time_unless_it_does_not_react() {
    let mut three = [running(1), running(2), running(3)];
    three[2].flags.evict = true;
    three[2].evicted = 10 * SECOND;
    let header = Header {
        evicted: 10 * SECOND,
        evicted_available: 800,
        ..Header::default()
    };
    let soon = 10 * SECOND + SECOND / 4;
    let next = |three: &[Record; 3], available| evict(three, &header, soon, available, 0);
    three[2].now_kib = 500;
    assert_eq!(next(&three, low(500)), None, "it gives back enough");
    assert_eq!(next(&three, low(499)), Some(1), "that is not enough");
    three[2].now_kib = 100;
    assert_eq!(next(&three, low(750)), None, "damped");
    three[2].now_kib = 5000;
    assert_eq!(next(&three, low(250)), None, "it gives back enough");
    assert_eq!(next(&three, low(249)), Some(1), "it may be too late");
    let later = 10 * SECOND + SECOND * 3 / 4;
    assert_eq!(evict(&three, &header, later, low(790), 0), None, "damped");
    assert_eq!(
        evict(&three, &header, later, low(600), 0),
        Some(1),
        "it falls"
    );
    assert_eq!(evict(&three, &header, 12 * SECOND, low(790), 0), Some(1));
}

#[test]
fn a_time_of_before_the_machine_was_started_again_protects_nobody() {
    let mut two = [running(1), running(2)];
    let header = Header {
        evicted: 500 * SECOND,
        evicted_available: 800,
        ..Header::default()
    };
    assert_eq!(evict(&two, &header, 9 * SECOND, low(790), 0), Some(1));
    // Of a process in another time namespace.
    two[1].flags.evict = true;
    two[1].evicted = 500 * SECOND;
    assert_eq!(evict(&two, &header, 9 * SECOND, low(790), 0), Some(0));
}

#[test]
fn what_was_measured_of_a_tool_that_has_ended_is_not_written_down() {
    let asked = Record {
        ticket: 1,
        need_kib: 4000,
        ..running(1)
    };
    let mut table = SeatTable::new(None, 1);
    *table.change(0) = asked;
    let own = Own::new(0, 0, asked);
    let measured = Measurement {
        tool: 7,
        used_kib: 100,
        need_kib: 150,
    };
    own.start(7);
    write_down(&own, &mut table, Some(measured));
    assert_eq!(table.records()[0].need_kib, 150);
    // The claim waits again, for a tool that needs more.
    let again = Record {
        state: SeatState::Waiting,
        need_kib: 6000,
        ..asked
    };
    own.start(0);
    own.change(&mut table, |record| *record = again);
    write_down(&own, &mut table, Some(measured));
    assert_eq!(table.records()[0], again);
}

#[test]
fn more_than_the_limit_is_given_back_whatever_the_machine_has() {
    let using = |started, now_kib, memory_limit_kib| Record {
        now_kib,
        memory_limit_kib,
        ..running(started)
    };
    let mut two = [using(1, 60, 100), using(2, 50, 100)];
    assert_eq!(evict_over_limit(&two, 9 * SECOND), Some(1));
    two[1].now_kib = 40;
    assert_eq!(evict_over_limit(&two, 9 * SECOND), None, "just what it may");
    let one = [using(1, 600, 100)];
    assert_eq!(evict_over_limit(&one, 9 * SECOND), None, "the last stays");
    // A claim that may use more is not stopped for one that may not.
    let three = [using(1, 60, 100), using(2, 50, 100), using(3, 500, 900)];
    assert_eq!(evict_over_limit(&three, 9 * SECOND), Some(1));
    two[1].now_kib = 50;
    two[1].flags.evict = true;
    two[1].evicted = 9 * SECOND;
    assert_eq!(evict_over_limit(&two, 9 * SECOND + 1), None, "it may react");
    assert_eq!(evict_over_limit(&two, 10 * SECOND), Some(0), "it did not");
}

#[test]
fn pressure_counts_only_near_the_reserve() {
    let is_short = |reading: &Reading| Shortage::new(reading, 100).is_short();
    let mut now = reading(150);
    assert!(!is_short(&now));
    now.stalled = 30.0;
    assert!(is_short(&now));
    now.available_kib = 250;
    assert!(!is_short(&now));
    assert!(is_short(&reading(99)));
}
