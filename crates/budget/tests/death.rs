//! Processes that are killed or stopped: their share is back at once, and no other process waits for them.

mod worker;

use std::time::Duration;

use rustix::process::Signal;
use warpcc_budget::{Board, Cancel, ClaimRequest};
use worker::{Event, Site, Worker, until};

const LONG: &str = "limit=2 hold=1000000";

fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn grants(site: &Site) -> Vec<Event> {
    let events = site.events().into_iter();
    events.filter(|e| e.letter == 'G').collect()
}

/// Milliseconds from `since` to the last of `count` grants.
fn latency(site: &Site, since: u64, count: usize) -> u64 {
    site.wait_for('G', count);
    grants(site)[count - 1].at.saturating_sub(since) / 1_000_000
}

/// The machine may have other things to do; a wait for a timer takes too long every time.
fn within_100_ms(attempt: impl Fn() -> u64) {
    let times: Vec<u64> = std::iter::repeat_with(&attempt).take(3).collect();
    if times.iter().all(|ms| *ms >= 100) {
        let more: Vec<u64> = std::iter::repeat_with(&attempt).take(5).collect();
        assert!(more.iter().any(|ms| *ms < 100), "{times:?} {more:?} ms");
    }
}

#[test]
fn a_killed_holder_gives_its_slots_back_at_once() {
    within_100_ms(kill_a_holder);
}

fn kill_a_holder() -> u64 {
    let site = Site::new();
    let mut holders: Vec<Worker> = (0..2).map(|_| site.start("run", LONG)).collect();
    site.wait_for('G', 2);
    let waiters: Vec<Worker> = (0..6)
        .map(|_| site.start("run", "limit=2 hold=1"))
        .collect();
    site.wait_for_waiting(6);
    // Settled down, so that no check happens to run.
    std::thread::sleep(Duration::from_millis(50));
    let killed = now();
    holders[0].kill();
    let after = latency(&site, killed, 3);
    waiters.into_iter().for_each(Worker::finish);
    after
}

#[test]
fn killed_waiters_are_not_waited_for() {
    within_100_ms(kill_waiters);
}

fn kill_waiters() -> u64 {
    let site = Site::new();
    // It releases in the ordinary way; a claim of this process would make the others nested.
    let holder = site.start("run", "limit=1 hold=700");
    site.wait_for('G', 1);
    // The best one, the second best, the watchers: whatever they were.
    let mut doomed: Vec<Worker> = (0..5)
        .map(|i| site.start("run", &format!("limit=1 priority={} hold=1000000", 100 + i)))
        .collect();
    site.wait_for_waiting(5);
    let last = site.start("run", "limit=1 hold=1");
    site.wait_for_waiting(6);
    doomed.iter_mut().for_each(Worker::kill);
    holder.finish();
    last.finish();
    let events = site.events();
    let released = events.iter().find(|e| e.letter == 'R').map(|e| e.at);
    assert_eq!(grants(&site).len(), 2);
    latency(&site, released.expect("released"), 2)
}

#[test]
fn a_whole_build_killed_at_once_leaves_the_machine_to_the_other() {
    within_100_ms(kill_a_build);
}

fn kill_a_build() -> u64 {
    let site = Site::new();
    let mut build: Vec<Worker> = (0..6)
        .map(|_| site.start("run", "limit=2 hold=1000000 build=1 priority=5"))
        .collect();
    site.wait_for('G', 2);
    site.wait_for_waiting(4);
    let others: Vec<Worker> = (0..3)
        .map(|_| site.start("run", "limit=2 hold=300 build=2"))
        .collect();
    site.wait_for_waiting(7);
    std::thread::sleep(Duration::from_millis(50));
    let killed = now();
    for worker in &mut build {
        worker.0.kill().expect("kill");
    }
    let after = latency(&site, killed, 4);
    others.into_iter().for_each(Worker::finish);
    let snapshot = site.board(1).snapshot();
    assert_eq!(snapshot.claims.len(), 0);
    after
}

#[test]
fn a_stopped_build_holds_no_slots_and_goes_on_when_it_is_continued() {
    let site = Site::new();
    let stopped: Vec<Worker> = (0..4)
        .map(|_| site.start("run", "limit=2 hold=3000 build=1 name=stopped"))
        .collect();
    site.wait_for('G', 2);
    site.wait_for_waiting(2);
    stopped.iter().for_each(|w| w.signal(Signal::STOP));
    let others: Vec<Worker> = (0..3)
        .map(|_| site.start("run", "limit=2 hold=50 count=3 build=2 name=other"))
        .collect();
    others.into_iter().for_each(Worker::finish);
    let granted = grants(&site);
    let of_stopped = granted.iter().filter(|e| e.word.starts_with("stopped"));
    assert_eq!(of_stopped.count(), 2, "stopped waiters are passed over");
    assert_eq!(granted.len(), 11);
    stopped.iter().for_each(|w| w.signal(Signal::CONT));
    stopped.into_iter().for_each(Worker::finish);
    assert_eq!(grants(&site).len(), 13);
}

#[test]
fn a_stopped_holder_of_the_lock_loses_it() {
    let site = Site::new();
    let board = site.board(2);
    let idle = site.start("run", LONG);
    site.wait_for('G', 1);
    // As if it had been stopped in the middle of a change: a process holds the lock and says that
    // it is the stopped one.
    idle.signal(Signal::STOP);
    let lock = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(site.board_folder().join("board.lock"))
        .expect("the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    std::os::unix::fs::FileExt::write_all_at(&lock, &idle.pid().to_le_bytes(), 0).expect("named");
    let began = std::time::Instant::now();
    let claim = board
        .claim(&ClaimRequest::default(), &Cancel::new())
        .expect("granted");
    let after = began.elapsed();
    assert!(
        after > Duration::from_millis(150) && after < Duration::from_secs(3),
        "{after:?}"
    );
    assert!(board.warnings().is_empty());
    drop(claim);
    // All others find the new lock.
    site.start("run", "limit=2 hold=1").finish();
    assert_eq!(grants(&site).len(), 2);
}

#[test]
fn seats_of_the_dead_are_used_again() {
    let site = Site::new();
    for _ in 0..5 {
        let mut workers: Vec<Worker> = (0..4)
            .map(|_| site.start("run", "limit=1 hold=1000000"))
            .collect();
        until("all there", || site.board(1).snapshot().claims.len() == 4);
        workers.iter_mut().for_each(Worker::kill);
        // There is one slot, and a dead worker has it. It is free when the board knows that all of them are dead. A worker
        // that arrives before that takes a new seat, as it should.
        let claim = site
            .board(1)
            .claim(&ClaimRequest::default(), &Cancel::new());
        assert!(claim.is_ok(), "nobody cancels");
    }
    let seats = std::fs::read_dir(site.board_folder().join("seats")).expect("seats");
    let seats = seats.count();
    assert!(
        (4..=5).contains(&seats),
        "{seats} seats: four workers at a time, and this process"
    );
    let board: Board = site.board(1);
    assert_eq!(board.snapshot().claims.len(), 0);
}

#[test]
fn killing_at_random_neither_loses_slots_nor_makes_any() {
    let site = Site::new();
    let board = site.board(3);
    let start = |build: u64| {
        let words = format!("limit=3 count=1000 hold=4 threads=2 build={}", build % 3);
        site.start("run", &words)
    };
    let mut workers: Vec<Worker> = (0..10).map(start).collect();
    let mut most = 0;
    for round in 0..60 {
        // Not in the order of their arrival.
        let place = (round * 7) % workers.len();
        workers[place].kill();
        workers[place] = start(round as u64);
        let until = std::time::Instant::now() + Duration::from_millis(30);
        while std::time::Instant::now() < until {
            most = most.max(board.snapshot().slots());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // A peek without the lock may see one that has gone and one that has come.
    assert!((3..=4).contains(&most), "{most} slots of 3");
    let before = site.count('G');
    until("still going on", || site.count('G') > before + 20);
    workers.iter_mut().for_each(Worker::kill);
    let left = board.claim(&ClaimRequest::default(), &Cancel::new());
    assert!(left.is_ok());
    until("only our own left", || board.snapshot().claims.len() == 1);
}
