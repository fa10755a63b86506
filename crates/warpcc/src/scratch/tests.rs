//! Private folders: names, locks, and who else may have them.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::parent::usual_root;
use super::*;

fn open(folder: &Path, name_use: NameUse) -> Result<(Scratch, bool), NoScratch> {
    let options = ScratchOptions {
        temporary: folder,
        name: "abc",
        name_use,
    };
    Scratch::open(&options, &Arc::default(), &Log::default())
}

#[test]
fn the_same_name_is_the_same_folder_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = {
        let (scratch, waited) = open(dir.path(), NameUse::InResult).expect("a folder");
        assert!(!waited);
        fs::write(scratch.path().join("k/file"), "x").expect("write");
        scratch.path().to_owned()
    };
    assert!(!path.exists());
    assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 0);
    let (again, _) = open(dir.path(), NameUse::InResult).expect("a folder");
    assert_eq!(again.path(), path);
    assert!(path.join("k").is_dir() && !path.join("k/file").exists());
}

#[test]
fn the_second_waits_for_the_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let (first, _) = open(dir.path(), NameUse::NotInResult).expect("a folder");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            open(dir.path(), NameUse::NotInResult).map(|(second, _)| second.path.clone())
        });
        std::thread::sleep(Duration::from_millis(250));
        assert!(!second.is_finished(), "it did not wait");
        let path = first.path.clone();
        drop(first);
        assert_eq!(second.join().expect("joins").expect("a folder"), path);
    });
}

/// A lock as a process leaves it that is not this one.
fn held_by(dir: &Path, pid: u32) -> File {
    let root = usual_root(dir);
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&root)
        .expect("the root");
    let lock = File::create(root.join("abc.lock")).expect("the lock");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let namespace = fs::metadata("/proc/self/ns/pid").expect("look").ino();
    let stat = warpcc_budget::proc::stat(pid);
    let (start, session) = stat.map_or((1, 1), |stat| (stat.start, stat.session));
    fs::write(
        root.join("abc.lock"),
        format!("{pid} {start} {session} {namespace}\n"),
    )
    .expect("write");
    lock
}

fn passes_by(dir: &Path) {
    let began = Instant::now();
    let (scratch, _) = open(dir, NameUse::NotInResult).expect("another folder");
    assert!(scratch.path().ends_with("abc-2"), "{scratch:?}");
    let refused = open(dir, NameUse::InResult).expect_err("the name counts");
    assert_eq!(refused.reason(), "the private folder is in use");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_holder_that_was_stopped_is_passed_by() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut holder = Command::new("sleep").arg("100").spawn().expect("started");
    let _lock = held_by(dir.path(), holder.id());
    kill_process(Pid::from_child(&holder), Signal::STOP).expect("stopped");
    passes_by(dir.path());
    holder.kill().expect("killed");
    // Not waited for yet: a zombie.
    passes_by(dir.path());
    holder.wait().expect("waited");
    passes_by(dir.path());
}

#[test]
fn the_next_holder_waits_for_a_killed_holders_tools() {
    let dir = tempfile::tempdir().expect("a folder");
    let us = std::process::id();
    drop(held_by(dir.path(), us));
    let folder = usual_root(dir.path()).join("abc");
    let mut tool = Command::new("sleep")
        .arg("0.5")
        .env("TMPDIR", folder.join("tmp"))
        .stdin(Stdio::null())
        .spawn()
        .expect("started");
    // For a moment after exec a process shows no variables.
    let variables = format!("/proc/{}/environ", tool.id());
    while std::fs::read(&variables).is_ok_and(|shown| shown.is_empty()) {
        std::thread::yield_now();
    }
    let (scratch, _) = open(dir.path(), NameUse::InResult).expect("a folder");
    let ended = tool.try_wait().expect("looked at");
    assert!(ended.is_some(), "the tool of a killed holder still runs");
    assert_eq!(scratch.path(), folder);
}

#[test]
fn a_folder_that_is_not_ours_alone_is_not_used() {
    let dir = tempfile::tempdir().expect("a folder");
    let usual = usual_root(dir.path());
    fs::create_dir(&usual).expect("create");
    fs::set_permissions(&usual, fs::Permissions::from_mode(0o777)).expect("chmod");
    let refused = open(dir.path(), NameUse::InResult).expect_err("the name counts");
    assert_eq!(refused.reason(), "no private folder");
    assert!(refused.advice().is_some_and(|told| told.contains("TMPDIR")));
    let path = {
        let (scratch, _) = open(dir.path(), NameUse::NotInResult).expect("another one");
        assert!(scratch.advice().is_some());
        assert!(!scratch.path().starts_with(&usual));
        assert_eq!(unusable_root(dir.path()), Some(usual.clone()));
        scratch.path().to_owned()
    };
    assert!(!path.exists());
    // And nothing is left next to it.
    assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 1);
    assert_eq!(fs::read_dir(&usual).expect("list").count(), 0);
}

#[test]
fn special_characters_are_not_used() {
    let (root, _) =
        parent::make(Path::new("/tmp/with space"), NameUse::NotInResult).expect("a root");
    assert!(root.starts_with("/tmp") && !root.to_string_lossy().contains(' '));
}

#[test]
fn a_folder_goes_although_somebody_still_writes() {
    let dir = tempfile::tempdir().expect("a folder");
    for _ in 0..100 {
        let (scratch, _) = open(dir.path(), NameUse::InResult).expect("a folder");
        let path = scratch.path().to_owned();
        let begun = Barrier::new(2);
        std::thread::scope(|scope| {
            let file = path.join("room");
            // As a thread does that looks for room on the disk.
            let writer = &begun;
            scope.spawn(move || {
                writer.wait();
                for _ in 0..200 {
                    drop(File::create(&file));
                    drop(fs::remove_file(&file));
                }
            });
            begun.wait();
            drop(scratch);
        });
        assert!(!path.exists(), "it is left");
    }
}
