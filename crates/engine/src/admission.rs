//! Decides when a task may start: from the machine's budget, the build tool's tokens, and the costs of earlier tasks.
//!
//! A task first waits for a token of the build tool, and then for its claim on the machine. It never waits for a token while it
//! has a claim, so tasks cannot wait for each other in a circle.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warpcc_budget::costs::Measured;
use warpcc_budget::{
    Board, Cancel, Cancelled, Claim, ClaimRequest, CommandKind, Costs, Expectation, Token, Tokens,
};
use warpcc_cache::{DiskStore, Hashing, Key, KeySink};
use warpcc_plan::{FileKind, Step, TaskGraph, Tool};

use crate::placement::LocalLoad;
use crate::process::Children;

const NOTES: &str = "costs-v1";

/// How a call of nvcc gets slots: from the budget and from a build tool's tokens.
pub struct Admission<'a> {
    store: Option<&'a DiskStore>,
    board: Board,
    tokens: Option<Tokens>,
    build: u64,
    subject: String,
    known: Mutex<KnownCosts>,
}

/// Costs of this source's steps, and of each tool in general.
#[derive(Debug, Default)]
struct KnownCosts {
    own: Costs,
    tools: Costs,
    learned: bool,
    /// When this call last exchanged its measurements of the tools with the other calls.
    exchanged: Option<Instant>,
}

/// How often a call stores the costs that it has measured, so that calls that run at the same time can use them.
const EXCHANGE: Duration = Duration::from_millis(500);

/// The permission of a task to run. Dropping it lets another task start.
pub struct Pass {
    // The fields are dropped in this order: a task that waits for the token then finds room.
    claim: Claim,
    _token: Option<Token>,
    /// How long the task waited for the token.
    pub for_token: Duration,
}

impl Pass {
    /// The claim on the machine.
    pub fn claim(&mut self) -> &mut Claim {
        &mut self.claim
    }

    /// How long the task waited for memory.
    pub fn for_memory(&self) -> Duration {
        self.claim.waited_for_memory()
    }

    /// Passes the permission on to the program that this process is about to become.
    pub fn keep_across_exec(self) {
        self.claim.keep_across_exec();
    }
}

impl<'a> Admission<'a> {
    /// Sets up admission for one call: `subject` is its directory and source, `build` the number of the ninja, make or pip
    /// behind it.
    pub fn new(
        board: Board,
        tokens: Option<Tokens>,
        build: u64,
        subject: String,
        store: Option<&'a DiskStore>,
    ) -> Self {
        let known = Mutex::new(KnownCosts {
            own: recall(store, &subject),
            tools: recall(store, ""),
            learned: false,
            exchanged: Some(Instant::now()),
        });
        Self {
            store,
            board,
            tokens,
            build,
            subject,
            known,
        }
    }

    /// The machine's budget.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The build tool's tokens, where there are any.
    pub fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    /// Slots that are not used or waited for.
    pub fn idle_slots(&self) -> u64 {
        self.local_load(0).idle
    }

    /// The load of the machine, as a task with this priority finds it.
    pub fn local_load(&self, priority_ms: u64) -> LocalLoad {
        let snapshot = self.board.snapshot();
        let slots = u64::from(self.board.limits().slots);
        let waiting: u64 = snapshot.waiting().map(|r| u64::from(r.slots)).sum();
        let left = snapshot.running().map(|running| {
            let ran = snapshot.taken.saturating_sub(running.started) / 1_000_000;
            running.expected_ms.saturating_sub(ran)
        });
        let before = snapshot.waiting().filter(|r| r.priority_ms >= priority_ms);
        let before = before.map(|r| r.expected_ms);
        LocalLoad {
            slots,
            idle: slots.saturating_sub(snapshot.slots() + waiting),
            ahead_ms: left.chain(before).fold(0, u64::saturating_add),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownCosts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The expected cost of a command with this name, with an input of this many bytes (0 if unknown).
    pub fn expect(&self, name: &str, kind: CommandKind, input_bytes: u64) -> Expectation {
        let known = self.known();
        let own = known.own.expect(name, kind, input_bytes);
        if own.known {
            own
        } else {
            known.tools.expect(name, kind, input_bytes)
        }
    }

    /// Milliseconds from the start of the call to its end.
    pub fn expect_whole(&self) -> u64 {
        self.expect(WHOLE, CommandKind::Nvcc, 0).millis
    }

    /// Waits until the task may run.
    ///
    /// # Errors
    /// The wait was cancelled.
    pub fn enter(&self, request: &Applicant<'_>, cancel: &Cancel) -> Result<Pass, Cancelled> {
        self.exchange();
        let clock = Instant::now();
        let token = match &self.tokens {
            Some(tokens) => Some(tokens.acquire(cancel)?),
            None => None,
        };
        let for_token = clock.elapsed();
        let expected = self.expect(request.name, request.kind, request.input_bytes);
        // The size of its input was not known when the critical path was computed.
        let guessed = self.expect(request.name, request.kind, 0).millis;
        let ask = ClaimRequest {
            kind: request.kind,
            slots: request.slots,
            memory_kib: expected.peak_kib,
            priority_ms: (request.priority_ms.saturating_sub(guessed))
                .saturating_add(expected.millis),
            expected_ms: expected.millis,
            build: self.build,
            label: request.label.to_owned(),
            tag: request.tag,
        };
        Ok(Pass {
            claim: self.board.claim(&ask, cancel)?,
            _token: token,
            for_token,
        })
    }

    /// Exchanges measurements of the tools with the other calls. In the first build of a project nothing is known before,
    /// and all calls start at once.
    fn exchange(&self) {
        let mut known = self.known();
        if known
            .exchanged
            .is_some_and(|last| last.elapsed() < EXCHANGE)
        {
            return;
        }
        known.exchanged = Some(Instant::now());
        let theirs = recall(self.store, "");
        known.tools.merge(&theirs);
        if let (true, Some(store)) = (known.learned, self.store) {
            drop(store.put_note(NOTES, &key_of(""), &known.tools.to_bytes()));
        }
    }

    /// Records the cost of a command.
    pub fn learn(&self, name: &str, kind: CommandKind, measured: Measured) {
        let mut known = self.known();
        known.own.learn(name, kind, measured);
        // For a tool in general, only costs with a known input size are recorded.
        known.tools.learn("", kind, measured);
        known.learned = true;
    }

    /// Records how long the whole call took from its first command to its last, without the time that it waited.
    pub fn learn_whole(&self, millis: u64) {
        let measured = Measured {
            input_bytes: 0,
            millis,
            peak_kib: 0,
        };
        self.known().own.learn(WHOLE, CommandKind::Nvcc, measured);
    }

    /// Saves the costs. If two calls end at once, the measurements of one may be lost: the next call measures again.
    pub fn keep(&self, store: &DiskStore) {
        let mut known = self.known();
        if known.learned {
            let theirs = recall(self.store, "");
            known.tools.merge(&theirs);
            // The costs are hints only: without them the defaults are used.
            drop(store.put_note(NOTES, &key_of(&self.subject), &known.own.to_bytes()));
            drop(store.put_note(NOTES, &key_of(""), &known.tools.to_bytes()));
        }
    }
}

const WHOLE: &str = "the whole call";

/// A task that asks to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Applicant<'a> {
    /// The name of the command: the same command has the same name next time.
    pub name: &'a str,
    /// The kind of command.
    pub kind: CommandKind,
    /// Threads that it keeps busy; 0 means 1.
    pub slots: u32,
    /// The size of its inputs in bytes, 0 if unknown.
    pub input_bytes: u64,
    /// Milliseconds from its start to the end of the call.
    pub priority_ms: u64,
    /// Its label in messages.
    pub label: &'a str,
    /// The caller's own number.
    pub tag: u64,
}

/// The kind under which the tool's costs are recorded.
pub fn kind_of(tool: Tool) -> CommandKind {
    match tool {
        Tool::Preprocess => CommandKind::Preprocess,
        Tool::CudaFe => CommandKind::CudaFe,
        Tool::Cicc | Tool::Nvvm => CommandKind::Cicc,
        Tool::Ptxas => CommandKind::Ptxas,
        Tool::HostCompile | Tool::HostAssembly | Tool::Clang => CommandKind::HostCompile,
        Tool::Assemble => CommandKind::Assemble,
        Tool::Fatbinary => CommandKind::Fatbinary,
        Tool::Nvlink => CommandKind::Nvlink,
        Tool::HostLink => CommandKind::HostLink,
        Tool::Archive | Tool::FilterDependencies => CommandKind::Other,
    }
}

/// A step's name in the costs of its source: its tool and what it writes, which names source and architecture.
pub fn name_of(step: &Step, graph: &TaskGraph) -> String {
    let written = step.writes.first().map_or("", |&id| graph.file(id).name());
    format!("{} {written}", step.tool.name())
}

/// A step's label for the user: the source and the architecture.
pub fn label_of(step: &Step, graph: &TaskGraph) -> String {
    let source = graph
        .files
        .iter()
        .find(|file| file.kind == FileKind::External);
    let source = source.map_or("", |file| file.name());
    match &step.arch {
        Some(arch) => format!("{source} {arch}"),
        None => source.to_owned(),
    }
}

/// Measures this process's tools at regular intervals, and ends the one that must make room. Returns when `done` is closed.
pub fn watch_memory(board: &Board, children: &Children, done: &Receiver<()>) {
    let mut pressure = board.pressure();
    // A short call is over before its first measurement.
    let mut wait = Duration::from_millis(25);
    while done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let tick = pressure.tick();
        for stop in tick.stop {
            children.evict(stop.tool);
        }
        wait = tick.next;
    }
}

/// The error of a task whose wait was cancelled.
pub fn cancelled(_: Cancelled) -> io::Error {
    io::Error::other("cancelled before it started")
}

fn recall(store: Option<&DiskStore>, subject: &str) -> Costs {
    let bytes = store.and_then(|store| store.note(NOTES, &key_of(subject)));
    bytes.map_or_else(Costs::default, |bytes| Costs::from_bytes(&bytes))
}

fn key_of(subject: &str) -> Key {
    let mut sink = Hashing::new("costs");
    sink.part("subject", subject.as_bytes());
    sink.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpcc_budget::{BoardPlace, BudgetLimits};
    use warpcc_cache::Options;

    #[test]
    fn costs_are_remembered() {
        let dir = tempfile::tempdir().expect("folder");
        let options = Options {
            max_size: 0,
            readonly: false,
        };
        let store = DiskStore::open(&dir.path().join("cache"), options).expect("store");
        let board = || {
            Board::open(
                &BoardPlace::At(dir.path().join("board")),
                BudgetLimits::detect(),
            )
        };
        let measured = Measured {
            input_bytes: 1 << 20,
            millis: 1234,
            peak_kib: 54321,
        };
        let first = Admission::new(board(), None, 1, "/src a.cu".to_owned(), Some(&store));
        assert!(!first.expect("cicc a.ptx", CommandKind::Cicc, 0).known);
        first.learn("cicc a.ptx", CommandKind::Cicc, measured);
        first.learn_whole(5000);
        first.keep(&store);
        let again = Admission::new(board(), None, 1, "/src a.cu".to_owned(), Some(&store));
        let expected = again.expect("cicc a.ptx", CommandKind::Cicc, 1 << 20);
        assert_eq!((expected.millis, expected.peak_kib), (1234, 54321));
        assert_eq!(again.expect_whole(), 5000);
        // For another source only the tool is known, not the file.
        let other = Admission::new(board(), None, 1, "/src b.cu".to_owned(), Some(&store));
        let expected = other.expect("cicc b.ptx", CommandKind::Cicc, 1 << 20);
        assert_eq!((expected.millis, expected.known), (1234, false));
    }
}
