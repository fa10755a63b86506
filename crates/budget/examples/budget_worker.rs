//! A process that makes claims, for the tests and for measurements: `budget_worker MODE name=value…`.
//!
//! Events are appended to `log=`, one line each: a letter, the process, nanoseconds since boot, and a word. Lines this
//! short are written whole.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use warpcc_budget::{
    Board, BoardPlace, BudgetLimits, Cancel, Claim, ClaimRequest, ClaimVerdict, CommandKind,
    Joined, Reserve, Tokens,
};

type Problem = Box<dyn std::error::Error>;

fn main() -> Result<(), Problem> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let words: HashMap<String, String> = arguments
        .filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect();
    let worker = Worker::new(words)?;
    match mode.as_str() {
        "run" => worker.run(),
        "exec" => worker.become_sleep(),
        "nest" => worker.nest(),
        "tool" => worker.tool(),
        "eat" => worker.eat(),
        "jobs" => worker.jobs(),
        "cost" => worker.cost(),
        _ => Err(format!("no mode {mode}").into()),
    }
}

struct Worker {
    words: HashMap<String, String>,
    log: Option<Mutex<File>>,
}

impl Worker {
    fn new(words: HashMap<String, String>) -> Result<Self, Problem> {
        let log = words
            .get("log")
            .map(|path| OpenOptions::new().create(true).append(true).open(path))
            .transpose()?
            .map(Mutex::new);
        Ok(Self { words, log })
    }

    fn number(&self, name: &str, otherwise: u64) -> u64 {
        let word = self.words.get(name);
        word.and_then(|w| w.parse().ok()).unwrap_or(otherwise)
    }

    fn note(&self, letter: char, word: &str) {
        if let Some(log) = &self.log {
            let line = format!("{letter} {} {} {word}\n", std::process::id(), now());
            let mut log = log.lock().unwrap_or_else(|e| e.into_inner());
            let _ = log.write_all(line.as_bytes());
        }
    }

    fn board(&self) -> Board {
        let place = match self.words.get("place") {
            Some(path) => BoardPlace::At(PathBuf::from(path)),
            None => BoardPlace::OfUser,
        };
        let detected = BudgetLimits::detect();
        let limits = BudgetLimits {
            slots: self.number("limit", detected.slots.into()) as u32,
            memory_kib: self.number("memory", detected.memory_kib),
            reserve: Reserve(self.number("reserve", detected.reserve.0)),
        };
        let board = match self.words.get("meminfo") {
            Some(path) => Board::open_with_meminfo(&place, limits, &PathBuf::from(path)),
            None => Board::open(&place, limits),
        };
        for warning in board.warnings() {
            self.note('W', &warning.to_string());
        }
        board
    }

    fn ask(&self, tag: u64) -> ClaimRequest {
        ClaimRequest {
            kind: CommandKind::Cicc,
            slots: self.number("slots", 1) as u32,
            memory_kib: self.number("kib", 0),
            priority_ms: self.number("priority", 0),
            expected_ms: self.number("hold", 0),
            build: self.number("build", 1),
            label: self.name().to_owned(),
            tag,
        }
    }

    fn name(&self) -> &str {
        self.words.get("name").map_or("worker", String::as_str)
    }

    fn hold(&self) -> Duration {
        Duration::from_micros(self.number("hold_us", self.number("hold", 10) * 1000))
    }

    /// Claims `count` times in each of `threads` threads, sleeping under each claim.
    fn run(&self) -> Result<(), Problem> {
        let board = self.board();
        let cancel = Cancel::new();
        thread::scope(|scope| {
            for thread in 0..self.number("threads", 1) {
                let (board, cancel) = (&board, &cancel);
                scope.spawn(move || {
                    for _ in 0..self.number("count", 1) {
                        self.note('A', self.name());
                        let Ok(claim) = board.claim(&self.ask(thread), cancel) else {
                            return self.note('C', self.name());
                        };
                        self.note('G', &format!("{} {:?}", self.name(), claim.standing()));
                        thread::sleep(self.hold());
                        self.note('R', self.name());
                        drop(claim);
                    }
                });
            }
            if let Some(after) = self.words.get("cancel_after") {
                thread::sleep(Duration::from_millis(after.parse().unwrap_or(0)));
                self.note('X', "cancel");
                cancel.cancel();
            }
        });
        for warning in board.warnings() {
            self.note('W', &warning.to_string());
        }
        Ok(())
    }

    /// Claims, then becomes another program that sleeps.
    fn become_sleep(&self) -> Result<(), Problem> {
        let claim = self.board().claim(&self.ask(0), &Cancel::new())?;
        self.note('G', self.name());
        claim.keep_across_exec();
        let seconds = self.hold().as_secs_f64().to_string();
        Err(Command::new("sleep").arg(seconds).exec().into())
    }

    /// Claims, and runs a process that claims in turn.
    fn nest(&self) -> Result<(), Problem> {
        let claim = self.board().claim(&self.ask(0), &Cancel::new())?;
        self.note('G', &format!("{} {:?}", self.name(), claim.standing()));
        let depth = self.number("depth", 1);
        let mut words = self.words.clone();
        words.insert("depth".into(), (depth.saturating_sub(1)).to_string());
        let mode = if depth > 0 { "nest" } else { "run" };
        let child = Command::new(std::env::current_exe()?)
            .arg(mode)
            .args(words.iter().map(|(n, v)| format!("{n}={v}")))
            .spawn()?;
        claim.started(child.id());
        let status = { child }.wait()?;
        self.note('R', self.name());
        exit(status.code().unwrap_or(1));
    }

    /// Runs a tool that eats `eat` KiB, as the engine runs one: measured, and stopped and run again
    /// where memory is short.
    fn tool(&self) -> Result<(), Problem> {
        let board = self.board();
        let cancel = Cancel::new();
        let mut claim = board.claim(&self.ask(0), &cancel)?;
        let over = AtomicBool::new(false);
        let tool = Mutex::new(None);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut pressure = board.pressure();
                while !over.load(Ordering::SeqCst) {
                    let tick = pressure.tick();
                    for stop in tick.stop {
                        self.note('E', &stop.tool.to_string());
                        if let Some(group) = *tool.lock().unwrap_or_else(|e| e.into_inner()) {
                            let _ = rustix::process::kill_process_group(
                                group,
                                rustix::process::Signal::KILL,
                            );
                        }
                    }
                    thread::park_timeout(tick.next);
                }
            });
            let done = self.rerun(&mut claim, &tool, &cancel);
            over.store(true, Ordering::SeqCst);
            done
        })
    }

    fn rerun(
        &self,
        claim: &mut Claim,
        tool: &Mutex<Option<rustix::process::Pid>>,
        cancel: &Cancel,
    ) -> Result<(), Problem> {
        loop {
            self.note('G', self.name());
            let mut child = Command::new(std::env::current_exe()?)
                .arg("eat")
                .args(self.words.iter().map(|(n, v)| format!("{n}={v}")))
                .process_group(0)
                .spawn()?;
            let pid = rustix::process::Pid::from_child(&child);
            *tool.lock().unwrap_or_else(|e| e.into_inner()) = Some(pid);
            claim.started(child.id());
            let status = child.wait()?;
            *tool.lock().unwrap_or_else(|e| e.into_inner()) = None;
            self.note('R', &format!("{} {status}", self.name()));
            if claim.verdict() == ClaimVerdict::StopAndRequeue {
                claim.requeue(0, cancel)?;
            } else if status.success() {
                self.note('P', &claim.peak_kib().to_string());
                return Ok(());
            } else {
                // As the kernel does it when there is nothing left.
                self.note('K', self.name());
                claim.requeue_alone(cancel)?;
            }
        }
    }

    /// Takes `eat` KiB in `grow` milliseconds and keeps it for `hold`, then works without it for `rest`. If there is a
    /// file `rise=` to wait for, it then waits for it, and takes as much again.
    fn eat(&self) -> Result<(), Problem> {
        self.hump();
        let began = Instant::now();
        let rest = Duration::from_millis(self.number("rest", 0));
        while began.elapsed() < rest {
            std::hint::spin_loop();
        }
        if let Some(file) = self.words.get("rise") {
            while !Path::new(file).exists() {
                thread::sleep(Duration::from_millis(5));
            }
            self.hump();
        }
        Ok(())
    }

    fn hump(&self) {
        let steps = 20;
        let each = self.number("eat", 1024) as usize * 1024 / steps;
        let pause = Duration::from_millis(self.number("grow", 1000)) / steps as u32;
        let mut eaten = Vec::new();
        for step in 0..steps {
            eaten.push(vec![step as u8 + 1; each]);
            thread::sleep(pause);
        }
        thread::sleep(self.hold());
    }

    /// Runs `count` tasks in `threads` threads under the tokens of `makeflags`.
    fn jobs(&self) -> Result<(), Problem> {
        let flags = self.words.get("makeflags").map_or("", String::as_str);
        let tokens: Option<Tokens> = match Tokens::join(flags) {
            Joined::Yes(tokens) => {
                self.note('J', "joined");
                Some(tokens)
            }
            Joined::Absent => {
                self.note('J', "absent");
                None
            }
            Joined::Unusable(why) => {
                self.note('J', &format!("unusable {why}"));
                None
            }
        };
        let cancel = Cancel::new();
        thread::scope(|scope| {
            for _ in 0..self.number("threads", 4) {
                let (tokens, cancel) = (&tokens, &cancel);
                scope.spawn(move || {
                    for _ in 0..self.number("count", 1) {
                        let token = tokens.as_ref().map(|t| t.acquire(cancel));
                        self.note('G', self.name());
                        thread::sleep(self.hold());
                        self.note('R', self.name());
                        drop(token);
                    }
                });
            }
        });
        Ok(())
    }

    /// Measures a claim and its release.
    fn cost(&self) -> Result<(), Problem> {
        let board = self.board();
        let cancel = Cancel::new();
        let rounds = self.number("count", 1000);
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..rounds {
            let began = Instant::now();
            drop(board.claim(&self.ask(0), &cancel)?);
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let text = format!(
            "claim and release: median {:?}, 99 of 100 below {:?}, worst {:?}\n",
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            times[times.len() - 1]
        );
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
