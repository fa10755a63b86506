//! `ninja -j1000`: a thousand processes wait for a few slots, cost nothing while they wait, and are woken one by one.

mod worker;

use std::fs;
use std::time::{Duration, Instant};

use worker::{Site, Worker, load, until};

/// Without optimisation the table's arithmetic takes twenty times as long, and the tests of others
/// run next to this one.
const CROWD: usize = if cfg!(debug_assertions) { 200 } else { 1000 };

/// Clock ticks of CPU time that the process has used.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let words = after_name.split_ascii_whitespace().skip(11).take(2);
    words.filter_map(|w| w.parse::<u64>().ok()).sum()
}

#[test]
fn a_thousand_waiters_sleep() {
    let site = Site::new();
    let holder = site.start("run", "limit=2 hold=1000000 slots=2");
    site.wait_for('G', 1);
    let began = Instant::now();
    let waiters: Vec<Worker> = (0..CROWD)
        .map(|i| site.start("run", &format!("limit=2 hold_us=500 build={}", i % 2)))
        .collect();
    let board = site.board(1);
    until("all waiting", || {
        std::thread::sleep(Duration::from_millis(50));
        board.snapshot().waiting().count() == CROWD
    });
    println!("{CROWD} came within {:?}", began.elapsed());

    std::thread::sleep(Duration::from_millis(500));
    let used = || waiters.iter().map(|w| ticks(w.pid())).sum::<u64>();
    let (before, watch) = (used(), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let spent = (used() - before) as f64 / ticks_per_second();
    let part = spent / watch.elapsed().as_secs_f64() * 100.0;
    println!("waiting: {part:.2} % of one CPU for all {CROWD} together");
    assert!(part < 5.0, "{part:.2} % of a CPU is spent on waiting");

    let began = Instant::now();
    drop(holder);
    waiters.into_iter().for_each(Worker::finish);
    println!("all {CROWD} done in {:?}", began.elapsed());
    let events = site.events();
    assert_eq!(events.iter().filter(|e| e.letter == 'R').count(), CROWD);
    let (most, _) = load(&events[1..], 2);
    assert!(
        most <= 2 + 1,
        "the killed holder never says that it is gone"
    );
    // From a release to the grant that it allowed.
    let mut wakes: Vec<u64> = Vec::new();
    for pair in events.windows(2) {
        if pair[0].letter == 'R' && pair[1].letter == 'G' {
            wakes.push((pair[1].at - pair[0].at) / 1000);
        }
    }
    wakes.sort_unstable();
    let at = |percent: usize| wakes[(wakes.len() - 1) * percent / 100];
    println!(
        "from release to grant: median {} us, 99 % within {} us",
        at(50),
        at(99)
    );
    assert!(at(50) < 50_000);
}

fn ticks_per_second() -> f64 {
    // Always 100 on Linux, for programs.
    100.0
}
