//! The tokens of make and ninja: with the real make, with a fifo as makes from 4.4 on have it, and with jobservers that lie.

mod worker;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use warpcc_budget::{Cancel, Cancelled, Joined, Tokens};
use worker::{Site, load, program, skipped};

/// Two recipes of a makefile, each with four threads that run five tasks.
fn make(site: &Site, jobs: &str, prefix: &str) -> Vec<worker::Event> {
    let words = format!(
        "log={} threads=4 count=5 hold=10",
        site.path("log").display()
    );
    let program = program();
    let flags = "\"makeflags=$$MAKEFLAGS\"";
    let recipe = format!("\t{prefix}{} jobs {words} {flags}\n", program.display());
    let text = format!("all: a b\na b:\n{recipe}.PHONY: all a b\n");
    fs::write(site.path("Makefile"), text).expect("written");
    let status = Command::new("make")
        .arg(jobs)
        .arg("-f")
        .arg(site.path("Makefile"))
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output();
    let Ok(output) = status else {
        skipped("there is no make here");
        return Vec::new();
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // It says so when tokens are missing at the end.
    assert!(!said.contains("jobserver tokens"), "{said}");
    site.events()
}

fn said(events: &[worker::Event]) -> Vec<&str> {
    let joined = events.iter().filter(|e| e.letter == 'J');
    joined.map(|e| e.word.as_str()).collect()
}

#[test]
fn make_with_three_jobs_runs_three_tasks() {
    let site = Site::new();
    let events = make(&site, "-j3", "+");
    if events.is_empty() {
        return;
    }
    assert_eq!(said(&events), ["joined", "joined"]);
    assert_eq!(load(&events, 3).0, 3);
    assert_eq!(events.iter().filter(|e| e.letter == 'G').count(), 40);
}

#[test]
fn make_with_one_job_runs_to_the_end() {
    let site = Site::new();
    let events = make(&site, "-j1", "+");
    // Without a jobserver there is no number of tokens; the shared budget has one.
    assert!(said(&events).iter().all(|s| *s == "absent"));
}

#[test]
fn make_that_keeps_its_descriptors_to_itself_is_as_good_as_none() {
    let site = Site::new();
    let events = make(&site, "-j3", "");
    assert!(
        said(&events)
            .iter()
            .all(|s| s.starts_with("unusable") || *s == "absent")
    );
}

fn join(flags: &str) -> Option<Tokens> {
    match Tokens::join(flags) {
        Joined::Yes(tokens) => Some(tokens),
        _ => None,
    }
}

#[test]
fn a_fifo_gives_and_gets_its_tokens_back() {
    let site = Site::new();
    let path = site.path("fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|s| s.success()));
    let mut fifo = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(&path)
        .expect("opened");
    fifo.write_all(b"ab").expect("written");
    let tokens = join(&format!("-j3 --jobserver-auth=fifo:{}", path.display())).expect("joined");
    let held: Vec<_> = (0..3).map(|_| tokens.try_acquire()).collect();
    assert!(held.iter().all(Option::is_some), "our own and two");
    assert!(tokens.try_acquire().is_none());

    // No wait lasts longer than until it is cancelled.
    let took = (0..5).map(|_| {
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| tokens.acquire(&cancel).map(drop));
            std::thread::sleep(Duration::from_millis(30));
            let began = Instant::now();
            cancel.cancel();
            assert_eq!(waiter.join().expect("no panic"), Err(Cancelled));
            began.elapsed()
        })
    });
    assert!(took.min() < Some(Duration::from_millis(100)));

    // A returned token wakes a waiter, our own token too.
    let mut held = held.into_iter();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| tokens.acquire(&Cancel::new()).map(drop));
        std::thread::sleep(Duration::from_millis(30));
        drop(held.next());
        assert_eq!(waiter.join().expect("no panic"), Ok(()));
    });
    drop(held);
    let mut back = [0; 8];
    let count = fifo.read(&mut back).expect("tokens");
    let mut back = back[..count].to_vec();
    back.sort_unstable();
    assert_eq!(back, b"ab", "the same bytes");
}

#[test]
fn a_process_that_ends_gives_all_tokens_back_once() {
    let (mut read, mut write) = std::io::pipe().expect("a pipe");
    write.write_all(b"abc").expect("written");
    let flags = format!(
        "--jobserver-auth={},{}",
        read.as_raw_fd(),
        write.as_raw_fd()
    );
    let tokens = join(&flags).expect("joined");
    let held: Vec<_> = (0..3).filter_map(|_| tokens.try_acquire()).collect();
    assert_eq!(held.len(), 3, "our own and two");
    tokens.give_all_back();
    assert!(tokens.try_acquire().is_none(), "and takes nothing more");
    // The threads that held them notice later.
    drop((held, tokens, write));
    let mut back = Vec::new();
    read.read_to_end(&mut back).expect("tokens");
    back.sort_unstable();
    assert_eq!(back, b"abc");
}

#[test]
fn a_pipe_is_used_without_changing_it_for_others() {
    let (mut read, mut write) = std::io::pipe().expect("a pipe");
    write.write_all(b"+").expect("written");
    let flags = format!(
        "w -j --jobserver-fds={},{}",
        read.as_raw_fd(),
        write.as_raw_fd()
    );
    let tokens = join(&flags).expect("joined");
    let (own, other) = (tokens.try_acquire(), tokens.try_acquire());
    assert!(own.is_some() && other.is_some());
    assert!(tokens.try_acquire().is_none());
    drop((own, other));
    // Still blocking for its owner, or this could fail.
    let mut byte = [0];
    read.read_exact(&mut byte).expect("the token");
    assert_eq!(&byte, b"+");
}

#[test]
fn jobservers_that_lie_are_absent() {
    let site = Site::new();
    let file = site.path("file");
    fs::write(&file, "x").expect("written");
    let open = fs::File::open(&file).expect("opened");
    let (read, _write) = std::io::pipe().expect("a pipe");
    let (_other, other_write) = std::io::pipe().expect("a pipe");
    let number = open.as_raw_fd();
    for auth in [
        "9999,9998".to_owned(),
        "-2,-2".to_owned(),
        "".to_owned(),
        "3".to_owned(),
        "a,b".to_owned(),
        "3,4,5".to_owned(),
        "99999999999999999999,1".to_owned(),
        format!("{number},{number}"),
        format!("{},{}", read.as_raw_fd(), other_write.as_raw_fd()),
        format!("{},{number}", read.as_raw_fd()),
        "fifo:".to_owned(),
        "fifo:/nonexistent".to_owned(),
        "fifo:/dev/null".to_owned(),
        format!("fifo:{}", file.display()),
        format!("fifo:{}", site.path("").display()),
    ] {
        let joined = Tokens::join(&format!("-j --jobserver-auth={auth}"));
        assert!(matches!(joined, Joined::Unusable(_)), "{auth}: {joined:?}");
    }
    assert!(matches!(Tokens::join("-j4 -- A=b"), Joined::Absent));
}

#[test]
fn a_jobserver_that_never_gives_a_token_does_not_stop_us() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let flags = format!(
        "--jobserver-auth={},{}",
        read.as_raw_fd(),
        write.as_raw_fd()
    );
    let tokens = join(&flags).expect("joined");
    // Its owner is gone; the pipe lives on with us.
    drop((read, write));
    let (tokens, cancel) = (&tokens, &Cancel::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..20 {
                    drop(tokens.acquire(cancel).expect("ours"));
                }
            });
        }
    });
}
