//! Many processes, one budget: never more than it, all of it, in the right order.

mod worker;

use std::time::Duration;

use warpcc_budget::{Cancel, Cancelled, ClaimRequest, GrantKind};
use worker::{Site, Worker, load, until};

fn finish(workers: Vec<Worker>) {
    workers.into_iter().for_each(Worker::finish);
}

#[test]
fn never_above_the_budget_and_nearly_always_at_it() {
    let site = Site::new();
    let words = "limit=3 count=12 hold=20 threads=2";
    let workers: Vec<Worker> = (0..12).map(|_| site.start("run", words)).collect();
    finish(workers);
    let events = site.events();
    let (most, used) = load(&events, 3);
    assert_eq!(events.iter().filter(|e| e.letter == 'G').count(), 288);
    assert_eq!(most, 3, "the budget, and no more");
    // 95 % and more on a quiet machine; others may be building here.
    assert!(
        used > 0.80,
        "{:.1} % of the budget was in use",
        used * 100.0
    );
}

#[test]
fn a_build_with_a_lower_limit_keeps_it_beside_one_with_a_higher() {
    let site = Site::new();
    let mut workers: Vec<Worker> = (0..6)
        .map(|_| site.start("run", "limit=6 count=10 hold=20 build=1 name=wide"))
        .collect();
    workers
        .extend((0..6).map(|_| site.start("run", "limit=2 count=5 hold=20 build=2 name=narrow")));
    finish(workers);
    let events = site.events();
    assert!(load(&events, 6).0 <= 6);
    let narrow: Vec<_> = events
        .iter()
        .filter(|e| e.word.starts_with("narrow"))
        .cloned()
        .collect();
    assert_eq!(load(&narrow, 2).0, 2);
}

#[test]
fn the_longest_expected_path_goes_first_whichever_process_it_is_in() {
    let site = Site::new();
    // Not a claim of this process: its children would be nested.
    let holder = site.start("run", "limit=1 hold=1000000 name=holder");
    site.wait_for('G', 1);
    let mut workers = Vec::new();
    for (i, priority) in [300, 100, 500, 200, 400].into_iter().enumerate() {
        workers.push(site.start(
            "run",
            &format!("limit=1 hold=2 priority={priority} name={priority}"),
        ));
        site.wait_for_waiting(i + 1);
    }
    drop(holder);
    finish(workers);
    let granted: Vec<String> = site
        .events()
        .into_iter()
        .filter(|e| e.letter == 'G')
        .skip(1)
        .map(|e| e.word)
        .collect();
    let order = [
        "500 Shared",
        "400 Shared",
        "300 Shared",
        "200 Shared",
        "100 Shared",
    ];
    assert_eq!(granted, order);
}

#[test]
fn two_builds_share_evenly_however_many_tasks_one_of_them_has() {
    let site = Site::new();
    let words =
        |build| format!("limit=4 count=10 hold=30 build={build} priority={build} name={build}");
    let mut workers: Vec<Worker> = (0..16).map(|_| site.start("run", &words(7))).collect();
    site.wait_for('G', 4);
    workers.extend((0..4).map(|_| site.start("run", &words(1))));
    let small = workers.split_off(16);
    finish(small);
    let events = site.events();
    let first = events.iter().find(|e| e.word == "1").map(|e| e.at);
    let last = events.iter().rfind(|e| e.word == "1").map(|e| e.at);
    let (first, last) = (first.expect("started"), last.expect("ended"));
    let granted = |name: &str| {
        let word = format!("{name} Shared");
        let during = events.iter().filter(|e| (first..=last).contains(&e.at));
        during.filter(|e| e.letter == 'G' && e.word == word).count()
    };
    // 40 of the small build; the large one gets as many, not four times as many.
    assert_eq!(granted("1"), 40);
    assert!((25..=56).contains(&granted("7")), "{}", granted("7"));
    finish(workers);
}

#[test]
fn a_claim_within_a_claim_does_not_wait_for_it() {
    let site = Site::new();
    site.start("nest", "limit=1 depth=2 hold=5").finish();
    let granted: Vec<String> = site
        .events()
        .into_iter()
        .filter(|e| e.letter == 'G')
        .map(|e| e.word)
        .collect();
    let nested = "worker Nested";
    assert_eq!(granted, ["worker Shared", nested, nested, nested]);
    assert_eq!(site.board(1).snapshot().claims.len(), 0);
}

#[test]
fn waiting_ends_at_once_when_cancelled() {
    let site = Site::new();
    let board = site.board(1);
    let claim = board
        .claim(&ClaimRequest::default(), &Cancel::new())
        .expect("free");
    // The best of several: without being woken every one would take as long as a watcher sleeps.
    let took = (0..5).map(|_| {
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| board.claim(&ClaimRequest::default(), &cancel).map(drop));
            until("a waiter", || board.snapshot().waiting().count() == 1);
            let began = std::time::Instant::now();
            cancel.cancel();
            assert_eq!(waiter.join().expect("no panic"), Err(Cancelled));
            began.elapsed()
        })
    });
    assert!(took.min() < Some(Duration::from_millis(100)));
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(board.snapshot().waiting().count(), 0);
    assert_eq!(
        board.claim(&ClaimRequest::default(), &cancel).map(drop),
        Err(Cancelled)
    );
    assert_eq!(claim.standing(), GrantKind::Shared);
    drop(claim);
    assert_eq!(board.snapshot().claims.len(), 0);
}

#[test]
fn a_program_that_takes_our_place_keeps_the_claim() {
    let site = Site::new();
    let kept = site.start("exec", "limit=1 hold=1000000");
    site.wait_for('G', 1);
    let pid = kept.pid();
    until("exec", || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
    });
    let next = site.start("run", "limit=1 hold=1");
    site.wait_for_waiting(1);
    std::thread::sleep(Duration::from_millis(300));
    let snapshot = site.board(1).snapshot();
    assert!(snapshot.running().all(|r| r.pid == pid && r.flags.kept));
    assert_eq!(site.count('G'), 1);
    drop(kept);
    next.finish();
    assert_eq!(site.count('G'), 2);
}

#[test]
fn a_wide_task_has_as_many_slots_as_it_asked_for() {
    let site = Site::new();
    let mut workers: Vec<Worker> = (0..4)
        .map(|_| site.start("run", "limit=4 count=40 hold=10"))
        .collect();
    site.wait_for('G', 4);
    workers.push(site.start("run", "limit=4 slots=4 hold=10 priority=9 name=wide"));
    site.wait_for('G', 8);
    finish(workers);
    let events = site.events();
    let wide = events
        .iter()
        .position(|e| e.letter == 'G' && e.word.starts_with("wide"));
    let neighbours = events[wide.expect("granted")..]
        .iter()
        .take_while(|e| !(e.letter == 'R' && e.word == "wide"))
        .filter(|e| e.letter == 'G');
    assert_eq!(neighbours.count(), 1, "nothing runs next to it");
}
