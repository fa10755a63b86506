//! Memory: which claims are granted, which are stopped, and that a build does not run out of memory.

mod worker;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use warpcc_budget::{Cancel, ClaimRequest};
use worker::{Event, Site, Worker, load, skipped, until};

#[test]
fn together_they_need_no_more_than_there_is() {
    let site = Site::new();
    let workers: Vec<Worker> = (0..6)
        .map(|_| site.start("run", "limit=6 memory=100 kib=40 reserve=0 count=3 hold=20"))
        .collect();
    workers.into_iter().for_each(Worker::finish);
    assert_eq!(load(&site.events(), 6).0, 2);
}

#[test]
fn one_that_is_larger_than_everything_runs_alone() {
    let site = Site::new();
    let workers: Vec<Worker> = (0..3)
        .map(|_| {
            site.start(
                "run",
                "limit=6 memory=100 kib=400 reserve=0 count=2 hold=20",
            )
        })
        .collect();
    workers.into_iter().for_each(Worker::finish);
    assert_eq!(load(&site.events(), 6).0, 1);
}

#[test]
fn after_an_out_of_memory_kill_it_runs_with_nothing_beside_it() {
    let site = Site::new();
    let board = site.board(8);
    let cancel = Cancel::new();
    let other = site.start("run", "limit=8 hold=400");
    site.wait_for('G', 1);
    let mut claim = board
        .claim(&ClaimRequest::default(), &cancel)
        .expect("room");
    claim.requeue_alone(&cancel).expect("not cancelled");
    assert_eq!(site.count('R'), 1, "it waited for the other's release");
    assert_eq!(board.snapshot().running().count(), 1);
    other.finish();
    let thirds = std::thread::scope(|scope| {
        let third = scope.spawn(|| board.claim(&ClaimRequest::default(), &cancel).map(drop));
        until("a waiter", || board.snapshot().waiting().count() == 1);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(board.snapshot().waiting().count(), 1, "not next to it");
        drop(claim);
        third.join().expect("no panic")
    });
    assert_eq!(thirds, Ok(()));
}

fn letters(events: &[Event]) -> String {
    events.iter().map(|e| e.letter).collect()
}

/// With a file in the place of `/proc/meminfo`, so that it runs everywhere.
#[test]
fn the_youngest_is_stopped_when_memory_gets_short_and_runs_later() {
    let site = Site::new();
    let meminfo = site.path("meminfo");
    // Replaced as a whole: a reader must not see half of it.
    let say = |kib: u64| {
        let new = site.path("new");
        fs::write(
            &new,
            format!("MemTotal: 1000000 kB\nMemAvailable: {kib} kB\n"),
        )
        .expect("write");
        // The same file stays open in the workers, so its content is what changes.
        fs::copy(&new, &meminfo).expect("copy");
    };
    say(900_000);
    let words = format!(
        "limit=4 memory=900000 kib=1000 reserve=100000 meminfo={} eat=1024 grow=100 hold=2500",
        meminfo.display()
    );
    let first = site.start("tool", &format!("{words} name=first"));
    site.wait_for('G', 1);
    let second = site.start("tool", &format!("{words} name=second"));
    site.wait_for('G', 2);
    std::thread::sleep(Duration::from_millis(400));
    say(90_000);
    site.wait_for('E', 1);
    until("back in the queue", || {
        site.board(1).snapshot().waiting().count() == 1
    });
    let pid = second.pid();
    assert!(site.board(1).snapshot().waiting().all(|r| r.pid == pid));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(
        site.count('G'),
        2,
        "no room yet, and the last one is not stopped"
    );
    say(900_000);
    site.wait_for('G', 3);
    first.finish();
    second.finish();
    let events = site.events();
    assert_eq!(
        events.iter().filter(|e| e.letter == 'K').count(),
        0,
        "{}",
        letters(&events)
    );
    assert_eq!(site.board(1).snapshot().claims.len(), 0);
}

#[test]
fn more_than_the_limit_is_given_back_though_the_machine_has_room() {
    let site = Site::new();
    // Both say that they need next to nothing; together they take a quarter more than they may.
    let words = "limit=4 memory=160000 kib=1000 reserve=0 eat=100000 grow=300 hold=1500";
    let first = site.start("tool", &format!("{words} name=first"));
    site.wait_for('G', 1);
    let second = site.start("tool", &format!("{words} name=second"));
    site.wait_for('E', 1);
    let pid = second.pid();
    until("the younger one back in the queue", || {
        site.board(1).snapshot().waiting().any(|r| r.pid == pid)
    });
    let waiting = site.board(1).snapshot();
    assert!(
        waiting.waiting().all(|r| r.lacked > 0),
        "it waits for memory"
    );
    first.finish();
    second.finish();
    let events = site.events();
    let count = |letter| events.iter().filter(|e| e.letter == letter).count();
    assert_eq!((count('P'), count('K')), (2, 0), "{}", letters(&events));
    let of_first = |e: &&Event| e.letter == 'R' && e.word.starts_with("first");
    assert_eq!(
        events.iter().filter(of_first).count(),
        1,
        "the older one was left in peace"
    );
}

#[test]
fn what_a_tool_has_given_back_is_for_others() {
    let site = Site::new();
    // Each says what it needs, and two do not fit. The first one has given all back when it rests.
    let words = "limit=4 memory=160000 kib=100000 reserve=0 eat=100000 grow=300 hold=300";
    let mut first = site.start("tool", &format!("{words} rest=600000 name=first"));
    site.wait_for('G', 1);
    let second = site.start("tool", &format!("{words} name=second"));
    second.finish();
    let events = site.events();
    let count = |letter| events.iter().filter(|e| e.letter == letter).count();
    // The second one ends while the first one still runs.
    assert_eq!((count('G'), count('R')), (2, 1), "{}", letters(&events));
    let snapshot = site.board(1).snapshot();
    let tools = snapshot.running().filter(|record| record.tool > 0);
    let tools: Vec<u32> = tools.map(|record| record.tool).collect();
    assert_eq!(tools.len(), 1);
    first.kill();
    let tool = rustix::process::Pid::from_raw(tools[0] as i32).expect("a process");
    rustix::process::kill_process_group(tool, rustix::process::Signal::KILL).expect("killed");
}

#[test]
fn a_claim_without_a_tool_uses_nothing() {
    let site = Site::new();
    let board = site.board(1);
    let claim = board.claim(&ClaimRequest::default(), &Cancel::new());
    let claim = claim.expect("room");
    let tool = site.start("eat", "eat=50000 grow=0 hold=1000000");
    claim.started(tool.pid());
    let uses = || board.snapshot().claims[0].now_kib;
    let mut pressure = board.pressure();
    while uses() < 40_000 {
        pressure.tick();
    }
    // What comes after it will use as much again.
    claim.ended();
    assert_eq!(uses(), 0);
}

/// A cgroup with a memory limit, removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(bytes: u64) -> Result<Self, String> {
        let name = format!("warpcc-budget-{}", std::process::id());
        let version1 = PathBuf::from("/sys/fs/cgroup/memory");
        let (base, limit) = if version1.is_dir() {
            (version1, "memory.limit_in_bytes")
        } else {
            (PathBuf::from("/sys/fs/cgroup"), "memory.max")
        };
        let folder = base.join(name);
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let cgroup = Self(folder);
        let file = cgroup.0.join(limit);
        fs::write(&file, bytes.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
        // Where there is swap, memory would never run out.
        for (name, text) in [("memory.swappiness", "0"), ("memory.swap.max", "0")] {
            let file = cgroup.0.join(name);
            if file.exists() {
                let _ = fs::write(file, text);
            }
        }
        Ok(cgroup)
    }

    /// The command, inside.
    fn start(&self, site: &Site, mode: &str, words: &str) -> Worker {
        let command = site.command(mode, words);
        let mut inside = std::process::Command::new("sh");
        inside
            .arg("-c")
            .arg("echo $$ > \"$0/cgroup.procs\" && exec \"$@\"")
            .arg(&self.0)
            .arg(command.get_program())
            .args(command.get_args());
        Worker(inside.spawn().expect("sh"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

const MIB: u64 = 1024 * 1024;

#[test]
fn tasks_that_do_not_fit_together_all_finish_in_a_limited_cgroup() {
    let cgroup = match Cgroup::new(500 * MIB) {
        Ok(cgroup) => cgroup,
        Err(why) => {
            // The test above has the same with an injected figure.
            skipped(&format!("no cgroup can be made here: {why}"));
            return;
        }
    };
    let site = Site::new();
    // Slowly, so that a busy machine sees it coming.
    let words = "eat=230000 grow=2500 hold=1500";
    // The kernel's way, first: it kills.
    let plain: Vec<Worker> = (0..3).map(|_| cgroup.start(&site, "eat", words)).collect();
    let killed = plain
        .into_iter()
        .filter_map(|mut w| w.0.wait().ok())
        .filter(|status| !status.success())
        .count();
    assert!(killed > 0, "these tasks do fit together");
    // They say that they need a tenth of what they do need, so that all are let in.
    let words = format!("{words} limit=4 memory=500000 reserve=60000 kib=23000");
    let workers: Vec<Worker> = (0..3)
        .map(|i| cgroup.start(&site, "tool", &format!("{words} name={i}")))
        .collect();
    workers.into_iter().for_each(Worker::finish);
    let events = site.events();
    let count = |letter| events.iter().filter(|e| e.letter == letter).count();
    assert_eq!(count('P'), 3, "{}", letters(&events));
    // Where the machine is so busy that no check is in time, the kernel is first: that tool runs again, alone. That
    // stopping comes first is shown above, where the figures are given.
    assert!(count('E') + count('K') >= 1, "{}", letters(&events));
    let peaks = events.iter().filter(|e| e.letter == 'P');
    for peak in peaks.map(|e| e.word.parse::<u64>().expect("a number")) {
        assert!((200_000..300_000).contains(&peak), "{peak} KiB");
    }
}
