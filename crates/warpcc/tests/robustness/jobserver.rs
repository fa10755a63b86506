//! Tests the jobservers of make and ninja with real builds below them: never more commands than tokens, no deadlock, and
//! every token back at the end, even where a warpcc is told to end.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use warpcc_budget::{Board, BoardPlace, BudgetLimits, Reserve};

use crate::board_watch::{BoardWatch, Seen};
use crate::budget::{with_board, write_sources};
use crate::space::{Outcome, Program, TestSpace, finish};
use crate::{KERNEL, skipped};

const SOURCES: usize = 3;
/// More slots than tokens, so that the jobserver is the limit.
const SLOTS: u32 = 8;

const TWO: &str = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90";

/// A pool as make from 4.4 on and ninja's own wrapper make it: a fifo that holds the tokens.
struct Pool {
    path: PathBuf,
    /// Both ends, so that the fifo lives and its tokens can be counted.
    fifo: File,
    tokens: usize,
}

impl Pool {
    fn new(space: &TestSpace, tokens: usize) -> Self {
        let path = space.beside("pool");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|s| s.success()), "mkfifo");
        let mut fifo = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .expect("the fifo");
        fifo.write_all(&vec![b'+'; tokens])
            .expect("room for tokens");
        Self { path, fifo, tokens }
    }

    /// The flags that make passes to its children. One command may run without a token.
    fn flags(&self) -> String {
        let jobs = self.tokens + 1;
        format!("-j{jobs} --jobserver-auth=fifo:{}", self.path.display())
    }

    /// Counts the tokens; afterwards the pool is empty.
    fn drain(mut self) -> usize {
        let mut tokens = vec![0; 64];
        self.fifo.read(&mut tokens).unwrap_or(0)
    }
}

/// ninja 1.13, the first one to join jobservers.
fn ninja() -> Option<PathBuf> {
    // `cargo xtask test` installs it and says where.
    let program = std::env::var_os("WARPCC_TEST_NINJA").map(PathBuf::from)?;
    assert!(
        program.exists(),
        "WARPCC_TEST_NINJA: no {}",
        program.display()
    );
    Some(program)
}

/// The command of one source, as a build file has it.
fn line(space: &TestSpace, source: &str, object: &str) -> String {
    let (warpcc, nvcc) = (TestSpace::warpcc(), &space.toolkit.nvcc);
    format!(
        "{} {} -fatbin {source} -o {object} {TWO}",
        warpcc.display(),
        nvcc.display()
    )
}

fn write_ninja(space: &TestSpace, sources: usize) {
    let mut text = format!("rule cu\n  command = {}\n", line(space, "$in", "$out"));
    for n in 0..sources {
        text += &format!("build o{n}.o: cu s{n}.cu\n");
    }
    space.write("build.ninja", &text);
}

/// Runs ninja below `pool`, with a look at what runs.
fn below(pool: &Pool, space: &TestSpace, board: &Path, ninja: &Path) -> (Outcome, Seen) {
    let watch = BoardWatch::start(board, SLOTS);
    let mut command = space.command(
        &Program::Other(ninja.to_owned(), Vec::new()),
        &["-v".into()],
    );
    command.env("MAKEFLAGS", pool.flags());
    let outcome = finish(command);
    (outcome, watch.finish())
}

fn text(outcome: &Outcome) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&outcome.stdout),
        outcome.stderr_text()
    )
}

fn objects(space: &TestSpace) -> usize {
    (0..SOURCES)
        .filter(|n| space.exists(&format!("o{n}.o")))
        .count()
}

#[test]
fn ninja_and_warpcc_share_the_tokens_of_a_fifo() {
    let Some(ninja) = ninja() else {
        return skipped("WARPCC_TEST_NINJA is not set; `cargo xtask test` sets it");
    };
    let (space, board) = with_board("ninja-tokens", SLOTS);
    write_sources(&space, SOURCES);
    write_ninja(&space, SOURCES);
    let pool = Pool::new(&space, 2);
    let (outcome, seen) = below(&pool, &space, &board, &ninja);
    let said = text(&outcome);
    assert_eq!(outcome.code, 0, "{said}");
    assert!(
        said.contains("Jobserver mode detected"),
        "this ninja joins no jobserver: {said}"
    );
    assert_eq!(objects(&space), SOURCES);
    // Two tokens, and the one that ninja was started with. All three are used: with fewer, a build would wait without a
    // reason.
    assert_eq!(seen.most_slots, 3, "{seen:?}");
    assert!(seen.most_tools <= 3, "{seen:?}");
    assert_eq!(pool.drain(), 2, "tokens at the end");
}

#[test]
fn without_any_token_one_command_runs_at_a_time() {
    let Some(ninja) = ninja() else {
        return skipped("WARPCC_TEST_NINJA is not set; `cargo xtask test` sets it");
    };
    let (space, board) = with_board("ninja-no-tokens", SLOTS);
    write_sources(&space, SOURCES);
    write_ninja(&space, SOURCES);
    let pool = Pool::new(&space, 0);
    let (outcome, seen) = below(&pool, &space, &board, &ninja);
    assert_eq!(outcome.code, 0, "{}", text(&outcome));
    assert_eq!(objects(&space), SOURCES);
    assert_eq!(seen.most_slots, 1, "{seen:?}");
    assert_eq!(pool.drain(), 0);
}

/// Waits until a warpcc of this board runs something, and sends it `signal`.
fn strike(board: &Path, signal: Signal) {
    let limits = BudgetLimits {
        slots: SLOTS,
        memory_kib: u64::MAX,
        reserve: Reserve(0),
    };
    let board = Board::open(&BoardPlace::At(board.to_owned()), limits);
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        // A warpcc with two commands at once holds a token of the pool.
        let snapshot = board.snapshot();
        let mut owners: Vec<u32> = snapshot.running().map(|r| r.pid).collect();
        owners.sort_unstable();
        let twice = owners.windows(2).find(|pair| pair[0] == pair[1]);
        let pid = twice.and_then(|pair| Pid::from_raw(i32::try_from(pair[0]).ok()?));
        if let Some(pid) = pid {
            kill_process(pid, signal).expect("a living warpcc");
            return;
        }
        assert!(Instant::now() < end, "no warpcc ran two commands at once");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends one of [`STRUCK`] commands by `signal` while it holds tokens of the pool. The other one goes on.
fn struck(name: &str, signal: Signal) -> Option<(TestSpace, Outcome, usize)> {
    let ninja = ninja()?;
    let (space, board) = with_board(name, SLOTS);
    for n in 0..STRUCK {
        // A file that compiles long enough to be hit by the signal.
        space.write(
            &format!("s{n}.cu"),
            &format!("{KERNEL}int f{n}() {{ return {n}; }}\n"),
        );
    }
    write_ninja(&space, STRUCK);
    let pool = Pool::new(&space, TOKENS);
    let program = Program::Other(ninja, vec!["-k0".into()]);
    let mut command = space.command(&program, &[]);
    command.env("MAKEFLAGS", pool.flags());
    let outcome = std::thread::scope(|scope| {
        let build = scope.spawn(|| finish(command));
        strike(&board, signal);
        build.join().expect("ninja")
    });
    assert_ne!(outcome.code, 0, "nothing was struck: {}", text(&outcome));
    assert_eq!(objects(&space), STRUCK - 1, "{}", text(&outcome));
    Some((space, outcome, pool.drain()))
}

/// ninja needs one token for the second, so two are left to be shared.
const STRUCK: usize = 2;
const TOKENS: usize = 3;

#[test]
fn a_warpcc_that_is_told_to_end_gives_its_tokens_back() {
    let Some((_space, outcome, tokens)) = struck("ninja-sigterm", Signal::TERM) else {
        return skipped("WARPCC_TEST_NINJA is not set; `cargo xtask test` sets it");
    };
    assert_eq!(tokens, TOKENS, "{}", text(&outcome));
}

#[test]
fn a_warpcc_that_is_killed_stops_nobody_else() {
    let Some((_space, outcome, tokens)) = struck("ninja-sigkill", Signal::KILL) else {
        return skipped("WARPCC_TEST_NINJA is not set; `cargo xtask test` sets it");
    };
    // The killed warpcc's own tokens are lost, as with every client of a jobserver. Ninja's token for it is not, nor are the
    // other warpcc's.
    assert!(
        (1..TOKENS).contains(&tokens),
        "{tokens} tokens: {}",
        text(&outcome)
    );
}

/// Runs the makefile of all sources with `-jN`, with a look at what runs.
fn make(name: &str, jobs: usize) -> Option<(Outcome, Seen, usize)> {
    let (space, board) = with_board(name, SLOTS);
    write_sources(&space, SOURCES);
    let names: Vec<String> = (0..SOURCES).map(|n| format!("o{n}.o")).collect();
    let mut makefile = format!("all: {}\n", names.join(" "));
    for n in 0..SOURCES {
        // With the plus make leaves its pipe open for the command.
        let command = line(&space, "$<", "$@");
        makefile += &format!("o{n}.o: s{n}.cu\n\t+{command}\n");
    }
    space.write("Makefile", &makefile);
    let command = space.command(
        &Program::Other("make".into(), Vec::new()),
        &[format!("-j{jobs}")],
    );
    if !fs::exists("/usr/bin/make").unwrap_or(false) {
        return None;
    }
    let watch = BoardWatch::start(&board, SLOTS);
    let outcome = finish(command);
    Some((outcome, watch.finish(), objects(&space)))
}

#[test]
fn make_and_warpcc_share_the_tokens_of_a_pipe() {
    let Some((outcome, seen, made)) = make("make-tokens", 3) else {
        return skipped("there is no make here");
    };
    let said = text(&outcome);
    assert_eq!((outcome.code, made), (0, SOURCES), "{said}");
    // make warns when tokens are missing at the end.
    assert!(!said.contains("jobserver"), "{said}");
    assert_eq!(seen.most_slots, 3, "{seen:?}");
    assert!(seen.most_tools <= 3, "{seen:?}");
}
