//! Worker processes for the tests, a folder for their board, and what they noted.

#![expect(
    dead_code,
    reason = "every test file is a program of its own and uses a part of this"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warpcc_budget::{Board, BoardPlace, BudgetLimits, Reserve};

/// A folder of its own for every test.
pub struct Site {
    folder: TempDir,
}

/// One line of the log.
#[derive(Debug, Clone)]
pub struct Event {
    pub letter: char,
    pub pid: u32,
    /// Nanoseconds since boot.
    pub at: u64,
    pub word: String,
}

/// A worker, killed when the test is over.
pub struct Worker(pub Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Worker {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("a living worker");
    }

    pub fn kill(&mut self) {
        self.0.kill().expect("kill");
        self.0.wait().expect("wait");
    }

    /// Waits for its good end.
    pub fn finish(mut self) {
        let status = self.0.wait().expect("wait");
        assert!(status.success(), "{status}");
    }
}

/// The example program that claims.
pub fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("own path");
    path.pop();
    path.pop();
    path.push("examples/budget_worker");
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build -p warpcc-budget --examples`",
        path.display()
    );
    path
}

impl Site {
    pub fn new() -> Self {
        // In memory where possible, as boards are.
        let base = Path::new("/dev/shm");
        let folder = if base.is_dir() {
            TempDir::new_in(base)
        } else {
            TempDir::new()
        };
        Self {
            folder: folder.expect("a folder"),
        }
    }

    pub fn board_folder(&self) -> PathBuf {
        self.folder.path().join("b")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command with this site's board and log.
    pub fn command(&self, mode: &str, words: &str) -> Command {
        let mut command = Command::new(program());
        command
            .arg(mode)
            .arg(format!("place={}", self.board_folder().display()))
            .arg(format!("log={}", self.path("log").display()))
            .args(words.split_ascii_whitespace())
            .stdin(Stdio::null());
        command
    }

    pub fn start(&self, mode: &str, words: &str) -> Worker {
        Worker(self.command(mode, words).spawn().expect("the worker"))
    }

    /// The board, in this process.
    pub fn board(&self, slots: u32) -> Board {
        let limits = BudgetLimits {
            slots,
            memory_kib: 1 << 40,
            reserve: Reserve(0),
        };
        Board::open(&BoardPlace::At(self.board_folder()), limits)
    }

    pub fn events(&self) -> Vec<Event> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let mut events: Vec<Event> = text
            .lines()
            .map(|line| {
                let mut words = line.splitn(4, ' ');
                let mut next = || words.next().unwrap_or_default();
                Event {
                    letter: next().chars().next().unwrap_or('?'),
                    pid: next().parse().expect("a pid"),
                    at: next().parse().expect("a time"),
                    word: next().to_owned(),
                }
            })
            .collect();
        events.sort_by_key(|event| event.at);
        events
    }

    pub fn count(&self, letter: char) -> usize {
        self.events().iter().filter(|e| e.letter == letter).count()
    }

    /// Waits until there are `count` events of this kind.
    pub fn wait_for(&self, letter: char, count: usize) {
        until(&format!("{count} times {letter}"), || {
            self.count(letter) >= count
        });
    }

    /// Waits until this many claims wait on the board.
    pub fn wait_for_waiting(&self, count: usize) {
        let board = self.board(1);
        until(&format!("{count} waiting"), || {
            board.snapshot().waiting().count() == count
        });
    }
}

/// Waits until `holds`; for as long as a loaded machine may take.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "waited too long for {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The most claims that were held at a time, and the part of `slots` that was in use between the
/// first grant and the last arrival.
pub fn load(events: &[Event], slots: usize) -> (usize, f64) {
    let mut held = 0usize;
    let mut most = 0;
    let mut used = 0u128;
    let first = events.iter().find(|e| e.letter == 'G').map_or(0, |e| e.at);
    // After the last arrival there may be too little left to do.
    let last = events.iter().rfind(|e| e.letter == 'A').map_or(0, |e| e.at);
    let mut before = first;
    for event in events {
        let until = event.at.clamp(first, last.max(first));
        used += u128::from(until - before) * held as u128;
        before = until;
        match event.letter {
            'G' => held += 1,
            'R' => held -= 1,
            _ => {}
        }
        most = most.max(held);
    }
    let whole = (last.max(first + 1) - first) as f64 * slots as f64;
    (most, used as f64 / whole)
}

/// Says that a test did nothing, and why.
#[expect(clippy::print_stdout, reason = "a test that skips itself must say so")]
pub fn skipped(why: &str) {
    println!("skipped: {why}");
}
