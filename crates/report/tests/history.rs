//! The history as many processes use it: appending at once, reading meanwhile, removing old logs.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use warpcc_report::history::{HistoryError, HistoryLimits};
use warpcc_report::record::CallOutcome;
use warpcc_report::sample::{Shape, build};
use warpcc_report::{Ancestry, BuildId, History, InvocationRecord};

const FOLDER: &str = "WARPCC_REPORT_TEST_FOLDER";
const EACH: u64 = 25;

fn id(name: &str) -> BuildId {
    BuildId {
        id: name.to_owned(),
        driver: None,
        log: name.to_owned(),
    }
}

fn call(build: &str, id: u64) -> InvocationRecord {
    InvocationRecord {
        id,
        build: build.to_owned(),
        args: vec!["nvcc".into(), "x".repeat(id as usize % 3000)],
        ..InvocationRecord::default()
    }
}

/// This test program again, running only the part named, as another process.
fn another(part: &str, folder: &Path) -> Child {
    let own = std::env::current_exe().expect("own path");
    Command::new(own)
        .args(["--exact", part, "--ignored", "--quiet"])
        .env(FOLDER, folder)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("starts")
}

#[test]
#[ignore = "one of the processes that another test starts"]
fn appender() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let history = History::new(folder, HistoryLimits::default());
    let own = u64::from(std::process::id());
    for at in 0..EACH {
        let record = call("ninja-1", own << 16 | at);
        history.append(&id("ninja-1"), record).expect("appended");
    }
}

#[test]
fn sixty_four_processes_append_and_nothing_is_lost_or_mixed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let history = History::new(folder.path(), HistoryLimits::default());
    let mut children: Vec<Child> = (0..64)
        .map(|_| another("appender", folder.path()))
        .collect();
    // Read while they write: whole records only, and nothing to warn about.
    while children
        .iter_mut()
        .any(|child| matches!(child.try_wait(), Ok(None)))
    {
        if let Some(build) = history.build("ninja-1").expect("listed") {
            assert!(!build.damage.is_notable(), "{:?}", build.damage);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for mut child in children {
        assert!(child.wait().expect("waited").success());
    }
    let build = history.build("ninja-1").expect("listed").expect("there");
    let mut ids: Vec<u64> = build.records.iter().map(|call| call.id).collect();
    assert_eq!(ids.len() as u64, 64 * EACH);
    // Each process's own records stay in order.
    for process in 0..64 {
        let own = ids[process] >> 16;
        let of_one: Vec<u64> = ids.iter().copied().filter(|id| id >> 16 == own).collect();
        assert!(of_one.is_sorted());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len() as u64, 64 * EACH);
}

#[test]
fn the_last_build_is_found_and_others_by_name() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let history = History::new(folder.path().join("new/deep"), HistoryLimits::default());
    assert_eq!(history.last().expect("empty"), None);
    let session = |name: &str| BuildId {
        log: "alone-7".into(),
        ..id(name)
    };
    for (at, build) in [id("ninja-1"), session("alone-1"), session("alone-2")]
        .iter()
        .enumerate()
    {
        let mut record = call(&build.id, at as u64);
        record.started_unix_ns = at as u64;
        history.append(build, record).expect("appended");
        // Logs are told apart by when they were written.
        std::thread::sleep(Duration::from_millis(20));
    }
    let last = history.last().expect("listed").expect("there");
    assert_eq!(
        (last.records.len(), last.records[0].build.as_str()),
        (1, "alone-2")
    );
    let first = history.build("alone-1").expect("listed").expect("there");
    assert_eq!(first.records.len(), 1);
    assert_eq!(history.build("never").expect("listed"), None);
    let names: Vec<String> = history
        .builds()
        .expect("listed")
        .into_iter()
        .map(|build| build.id)
        .collect();
    assert_eq!(names, ["alone-2", "alone-1", "ninja-1"]);
}

#[test]
fn a_build_in_the_list_is_the_sum_of_its_calls() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let history = History::new(folder.path(), HistoryLimits::default());
    // The second one began first, and ended last.
    for (at, wall, directory, outcome) in [
        (5, 1, "/p/src/a", CallOutcome::DirectHit),
        (2, 9, "/p/src/b", CallOutcome::Built),
        (4, 1, "/p/src", CallOutcome::DirectHit),
    ] {
        let record = InvocationRecord {
            started_unix_ns: at * 1_000_000_000,
            wall: Duration::from_secs(wall),
            directory: directory.to_owned(),
            outcome,
            ..call("ninja-1", at)
        };
        history.append(&id("ninja-1"), record).expect("appended");
    }
    let builds = history.builds().expect("listed");
    let [build] = builds.as_slice() else {
        panic!("{builds:?}")
    };
    assert_eq!((build.calls, build.direct_hits), (3, 2));
    assert_eq!(build.wall, Duration::from_secs(9));
    assert_eq!(build.started_unix_ns, 2_000_000_000);
    assert_eq!(build.folder, std::path::Path::new("/p/src"));
}

#[test]
fn any_given_id_is_found_again() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let history = History::new(folder.path(), HistoryLimits::default());
    let ancestry = Ancestry::read();
    for given in ["v1.2", "v1.20", "a b/../c", "alone-x", "ä", "v1"] {
        let build = ancestry.build(Some(given));
        history
            .append(&build, call(&build.id, 1))
            .expect("appended");
    }
    for given in ["v1.2", "v1.20", "a b/../c", "alone-x", "ä", "v1"] {
        let build = history.build(given).expect("listed").expect(given);
        assert_eq!(build.records.len(), 1, "{given}");
    }
}

#[test]
fn old_builds_are_removed_and_lone_calls_do_not_push_them_out() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let limits = HistoryLimits {
        builds: 3,
        ..HistoryLimits::default()
    };
    let history = History::new(folder.path(), limits);
    for at in 0..6 {
        let name = format!("make-{at}");
        history
            .append(&id(&name), call(&name, at))
            .expect("appended");
        std::thread::sleep(Duration::from_millis(15));
    }
    for at in 0..6 {
        let name = format!("alone-{at}");
        history
            .append(&id(&name), call(&name, at))
            .expect("appended");
        std::thread::sleep(Duration::from_millis(15));
    }
    let left: Vec<String> = history
        .builds()
        .expect("listed")
        .into_iter()
        .map(|build| build.id)
        .collect();
    assert_eq!(left.len(), 6, "{left:?}");
    for name in [
        "make-3", "make-4", "make-5", "alone-3", "alone-4", "alone-5",
    ] {
        assert!(left.iter().any(|one| one == name), "{name} in {left:?}");
    }
}

#[test]
fn a_build_without_end_does_not_fill_the_disk() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let limits = HistoryLimits {
        builds: 50,
        bytes: 64 << 10,
        log_bytes: 16 << 10,
    };
    let history = History::new(folder.path(), limits);
    for at in 0..400 {
        history
            .append(&id("nightly"), call("nightly", at))
            .expect("appended");
    }
    let files = std::fs::read_dir(folder.path()).expect("listed");
    let bytes: u64 = files
        .map(|file| file.expect("entry").metadata().expect("there").len())
        .sum();
    assert!(bytes <= 100 << 10, "{bytes}");
    let build = history.build("nightly").expect("listed").expect("there");
    assert_eq!(build.records.last().map(|call| call.id), Some(399));
    assert!(build.records.is_sorted_by_key(|call| call.id));
}

#[test]
fn an_unwritable_log_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").expect("written");
    let history = History::new(file.join("history"), HistoryLimits::default());
    let error = history
        .append(&id("x"), call("x", 1))
        .expect_err("no folder");
    assert!(error.to_string().contains("file/history"), "{error}");
    // A full disk.
    let full = History::new(folder.path().join("h"), HistoryLimits::default());
    std::fs::create_dir(folder.path().join("h")).expect("created");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("h/x.log")).expect("linked");
    let error = full.append(&id("x"), call("x", 1)).expect_err("full");
    assert!(matches!(error, HistoryError::Io { .. }), "{error}");
    // Others' files and rubbish among the logs are no reason to stop.
    std::fs::write(folder.path().join("h/notes.txt"), "hello").expect("written");
    std::fs::write(folder.path().join("h/bad.log"), [0xff; 3000]).expect("written");
    full.append(&id("y"), call("y", 1)).expect("appended");
    assert_eq!(
        full.last().expect("listed").expect("there").records.len(),
        1
    );
}

#[test]
fn cost_of_a_record() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let history = History::new(folder.path(), HistoryLimits::default());
    let large = build(&Shape {
        calls: 400,
        ..Shape::default()
    });
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    for (name, hit) in [("direct hit", true), ("built", false)] {
        let mut calls: Vec<InvocationRecord> = large
            .iter()
            .filter(|call| (call.outcome == CallOutcome::DirectHit) == hit)
            .cloned()
            .collect();
        let count = calls.len();
        let mut times = Vec::new();
        for call in calls.drain(..) {
            let build = id(if hit { "hits" } else { "built" });
            let start = Instant::now();
            history.append(&build, call).expect("appended");
            times.push(start.elapsed());
        }
        let bytes =
            std::fs::metadata(
                folder
                    .path()
                    .join(if hit { "hits.log" } else { "built.log" }),
            );
        let bytes = bytes.expect("there").len() / count as u64;
        println!("append, {name}: {:?}, {bytes} bytes each", median(times));
    }
    let times = (0..300).map(|_| {
        let start = Instant::now();
        let found = Ancestry::read();
        assert!(!found.build(None).id.is_empty());
        start.elapsed()
    });
    println!(
        "which build: {:?}, {} ancestors",
        median(times.collect()),
        Ancestry::read().ancestors.len()
    );
    let start = Instant::now();
    let read = history
        .build("sample-1")
        .expect("listed")
        .map_or(0, |build| build.records.len());
    assert_eq!(read, 0, "records stand in logs of their own names");
    println!("passing over all: {:?}", start.elapsed());
}
