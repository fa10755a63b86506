//! Whatever the runtime folder holds: a warning at most, and the task runs.

mod worker;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use warpcc_budget::{
    Board, BoardPlace, BudgetLimits, Cancel, Claim, ClaimRequest, GrantKind, Reserve, Warning,
};
use worker::{Site, Worker, load, skipped, until};

fn claim(board: &Board) -> Claim {
    board
        .claim(&ClaimRequest::default(), &Cancel::new())
        .expect("granted")
}

#[test]
fn no_bytes_make_a_record_panic() {
    for seed in 0..200 {
        let bytes = noise(256 + seed);
        let bytes = bytes[seed..].try_into().expect("256");
        let record = warpcc_budget::Record::decode(bytes, seed);
        assert_eq!(record, warpcc_budget::Record::default());
    }
}

/// Bytes that look like nothing, the same every time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_damaged_board_is_as_good_as_an_empty_one() {
    for content in [
        noise(1 << 20),
        noise(300),
        noise(255),
        vec![0xff; 4096],
        vec![0; 70_000],
    ] {
        let site = Site::new();
        drop(site.board(1));
        fs::write(site.board_folder().join("board-v1"), content).expect("write");
        let board = site.board(1);
        let first = claim(&board);
        assert_eq!(first.standing(), GrantKind::Shared);
        assert_eq!(board.snapshot().running().count(), 1);
        drop(first);
        assert!(board.warnings().is_empty());
    }
}

#[test]
fn damage_while_claims_are_held_frees_no_seat_for_long() {
    let site = Site::new();
    let words = "limit=2 count=30 hold=10 threads=2";
    let workers: Vec<Worker> = (0..4).map(|_| site.start("run", words)).collect();
    site.wait_for('G', 10);
    let path = site.board_folder().join("board-v1");
    for round in 0..10 {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("board");
        match round % 3 {
            0 => file.set_len(0).expect("truncated"),
            1 => fs::write(&path, noise(5000)).expect("written"),
            _ => file.set_len(300).expect("truncated"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    workers.into_iter().for_each(Worker::finish);
    let events = site.events();
    assert_eq!(events.iter().filter(|e| e.letter == 'G').count(), 240);
    assert_eq!(events.iter().filter(|e| e.letter == 'W').count(), 0);
    // Each time the running ones are forgotten; the next two do not know of them.
    assert!(load(&events, 2).0 <= 8);
    assert_eq!(site.board(1).snapshot().claims.len(), 0);
}

#[test]
fn a_waiter_that_was_wiped_off_comes_back() {
    let site = Site::new();
    let holder = site.start("run", "limit=1 hold=700");
    site.wait_for('G', 1);
    let waiter = site.start("run", "limit=1 hold=1");
    site.wait_for_waiting(1);
    fs::write(site.board_folder().join("board-v1"), b"").expect("wiped");
    waiter.finish();
    holder.finish();
    assert_eq!(site.count('G'), 2);
}

fn limits(slots: u32) -> BudgetLimits {
    BudgetLimits {
        slots,
        memory_kib: 1000,
        reserve: Reserve(0),
    }
}

/// With its own budget, and a warning that says why.
fn assert_local(path: &Path, reason: &str) {
    let board = Board::open(&BoardPlace::At(path.to_owned()), limits(2));
    assert!(!board.is_shared());
    let warnings = board.warnings();
    let [warning @ Warning::NoFolder { .. }] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(warning.to_string().contains(reason), "{warning}");
    let two = (claim(&board), claim(&board));
    assert_eq!(two.0.standing(), GrantKind::Local);
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let third = scope.spawn(|| board.claim(&ClaimRequest::default(), &cancel).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!third.is_finished(), "the limit holds here too");
        drop(two);
        assert_eq!(third.join().expect("no panic"), Ok(()));
    });
    assert_eq!(board.warnings().len(), 0, "said once");
    assert_eq!(board.snapshot().claims.len(), 0);
}

#[test]
fn without_a_folder_every_process_has_its_own_budget() {
    let site = Site::new();
    assert_local(Path::new("/proc/warpcc"), "/proc/warpcc");
    let file = site.path("file");
    fs::write(&file, "").expect("written");
    assert_local(&file, "not a folder");
    let open = site.path("open");
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("chmod");
    assert_local(&open, "other users may access it");
    if rustix::process::geteuid().is_root() {
        let theirs = site.path("theirs");
        fs::create_dir(&theirs).expect("made");
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o700)).expect("chmod");
        std::os::unix::fs::chown(&theirs, Some(12345), None).expect("chown");
        assert_local(&theirs, "another user");
    }
    let link = site.path("link");
    let real = site.path("real");
    drop(Board::open(&BoardPlace::At(real.clone()), limits(1)));
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    assert_local(&link, "not a folder");
}

#[test]
fn folders_in_the_place_of_files_are_no_reason_to_fail() {
    for name in ["board-v1", "board.lock"] {
        let site = Site::new();
        drop(site.board(1));
        let path = site.board_folder().join(name);
        fs::remove_file(&path).expect("removed");
        fs::create_dir(&path).expect("made");
        assert_local(&site.board_folder(), "");
    }
    let site = Site::new();
    let board = site.board(1);
    fs::remove_dir_all(site.board_folder().join("seats")).expect("removed");
    let held = claim(&board);
    assert_eq!(held.standing(), GrantKind::Local);
    assert!(matches!(board.warnings()[..], [Warning::BoardFailed(_)]));
}

#[test]
fn a_full_disk_is_no_reason_to_fail() {
    let site = Site::new();
    fs::create_dir(site.path("disk")).expect("made");
    let disk = site.path("disk");
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new("mount")
            .args(arguments)
            .arg(&disk)
            .status();
        status.is_ok_and(|s| s.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=64k,mode=700", "none"]) {
        skipped("no file system can be mounted here");
        return;
    }
    let place = BoardPlace::At(disk.join("b"));
    let board = Board::open(&place, limits(1));
    let shared = claim(&board);
    let _ = fs::write(disk.join("filler"), vec![1; 1 << 20]);
    drop(shared);
    let before = claim(&board);
    drop(before);
    let late = Board::open(&BoardPlace::At(disk.join("c")), limits(1));
    drop(claim(&late));
    let status = std::process::Command::new("umount")
        .arg("-l")
        .arg(&disk)
        .status();
    assert!(status.is_ok_and(|s| s.success()));
}

#[test]
fn a_removed_folder_is_made_again_for_those_who_come_new() {
    let site = Site::new();
    let board = site.board(1);
    let old = claim(&board);
    fs::remove_dir_all(site.board_folder()).expect("removed");
    let new = claim(&board);
    assert_eq!(new.standing(), GrantKind::Shared);
    assert_eq!(board.snapshot().running().count(), 1);
    drop(old);
    drop(new);
    assert_eq!(board.snapshot().claims.len(), 0);
    assert!(board.warnings().is_empty());
}

#[test]
fn measurements_of_a_claim_stay_on_its_board() {
    let site = Site::new();
    let board = site.board(1);
    let old = claim(&board);
    fs::remove_dir_all(site.board_folder()).expect("removed");
    // Another process, as it were: its claim has the same seat on the new board.
    let other = site.board(1);
    let new = claim(&other);
    let tickets = || -> Vec<u64> { other.snapshot().claims.iter().map(|r| r.ticket).collect() };
    let before = tickets();
    assert_eq!(before.len(), 1);
    assert!(board.is_shared(), "it finds the new board");
    board.pressure().tick();
    assert_eq!(tickets(), before);
    drop(old);
    drop(new);
}

#[test]
fn times_of_the_future_do_not_stop_the_queue() {
    let site = Site::new();
    // As after a reboot with a board that survived it: claims that came "later than now".
    let mut old = site.start("run", "limit=1 hold=1000000");
    site.wait_for('G', 1);
    old.kill();
    let path = site.board_folder().join("board-v1");
    let bytes = fs::read(&path).expect("board");
    let mut record = warpcc_budget::Record::decode(bytes[256..512].try_into().expect("a seat"), 0);
    assert_eq!(record.state, warpcc_budget::SeatState::Running);
    for time in [
        &mut record.arrived,
        &mut record.started,
        &mut record.refused,
    ] {
        *time = u64::MAX - 5;
    }
    let mut bytes = bytes;
    bytes[256..512].copy_from_slice(&record.encode(0));
    fs::write(&path, bytes).expect("written");
    let board = site.board(1);
    drop(claim(&board));
    until("gone", || board.snapshot().claims.is_empty());
}

#[test]
fn a_folder_with_a_long_name_works() {
    let site = Site::new();
    let path = site.path(&"long".repeat(40));
    let place = format!("place={}", path.display());
    let start = |hold: u64| site.start("run", &format!("{place} limit=1 hold={hold}"));
    let holder = start(500);
    site.wait_for('G', 1);
    let waiter = start(1);
    until("a socket", || {
        fs::read_dir(path.join("wake")).is_ok_and(|sockets| sockets.count() == 1)
    });
    holder.finish();
    waiter.finish();
    assert_eq!(site.count('G'), 2);
}
