//! Made-up builds for tests, screenshots and documentation. Nothing in them was measured.
//!
//! A small simulation of a scheduler with slots and memory, so that the records agree with each
//! other as those of a real build do. The same description gives the same build.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::record::{Budget, Change, Header, Headers, Invocation, Outcome, State, Task, Wait};

mod names;

/// What kind of build to make up.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Calls.
    pub calls: usize,
    /// Architectures, such as `90a`.
    pub architectures: Vec<String>,
    /// Processor slots.
    pub slots: u32,
    /// Memory for all tasks together, KiB.
    pub memory_kib: u64,
    /// Calls the build tool has at once.
    pub jobs: usize,
    /// Of a thousand calls, how many are answered as a whole.
    pub direct_hits: u64,
    /// Another number, another build.
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            calls: 240,
            architectures: ["80", "90a", "100a", "120"].map(Into::into).to_vec(),
            slots: 16,
            memory_kib: 40 << 20,
            jobs: 32,
            direct_hits: 300,
            seed: 1,
        }
    }
}

/// A build of this shape, its records in the order they would be appended.
pub fn build(shape: &Shape) -> Vec<Invocation> {
    let mut random = Random(shape.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let calls = (0..shape.calls).map(|at| names::call(at, shape, &mut random));
    let mut run = Simulation {
        shape,
        waiting: calls.collect(),
        active: Vec::new(),
        ready: VecDeque::new(),
        running: BinaryHeap::new(),
        free_slots: vec![true; shape.slots.max(1) as usize],
        held_kib: 0,
        open: 0,
        now: 0,
        done: Vec::new(),
    };
    run.run();
    run.done
}

/// Numbers without a pattern that a person would see: xorshift.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    /// Mostly near 1, sometimes several times that.
    fn spread(&mut self) -> f64 {
        let sum: u64 = (0..3).map(|_| self.below(1000)).sum();
        let base = 0.4 + sum as f64 / 2500.0;
        if self.below(12) == 0 {
            base * 3.2
        } else {
            base
        }
    }
}

/// A call that is not finished: its tasks with how long each will take, in µs.
pub(crate) struct Planned {
    pub(crate) record: Invocation,
    pub(crate) takes: Vec<u64>,
}

struct Simulation<'a> {
    shape: &'a Shape,
    waiting: VecDeque<Planned>,
    active: Vec<Option<(u64, Planned)>>,
    ready: VecDeque<(usize, usize)>,
    /// Ends, with the call and its task, the next one first.
    running: BinaryHeap<Reverse<(u64, usize, usize)>>,
    free_slots: Vec<bool>,
    held_kib: u64,
    /// Calls that are not finished.
    open: usize,
    now: u64,
    done: Vec<Invocation>,
}

/// When the sample machine's builds start, in µs since it did.
const BOOTED: u64 = 7_200_000_000;
/// 2026-01-15 09:30 UTC, ns since 1970.
const STARTED: u64 = 1_768_469_400_000_000_000;

impl Simulation<'_> {
    fn run(&mut self) {
        loop {
            self.start_calls();
            self.start_tasks();
            let Some(Reverse((ends, call, task))) = self.running.pop() else {
                return;
            };
            self.now = self.now.max(ends);
            self.end(call, task, ends);
        }
    }

    fn start_calls(&mut self) {
        while self.open < self.shape.jobs.max(1) {
            let Some(mut call) = self.waiting.pop_front() else {
                return;
            };
            // The build tool takes a moment for each.
            self.now += 400;
            call.record.since_boot_ns = (BOOTED + self.now) * 1000;
            call.record.started_unix_ns = STARTED + self.now * 1000;
            if call.record.tasks.is_empty() {
                let mut record = call.record;
                self.now += 6_000 / self.shape.jobs as u64;
                record.wall = record.wall.max(Duration::from_millis(6));
                self.done.push(record);
                continue;
            }
            let at = self.active.len();
            for (task, one) in call.record.tasks.iter_mut().enumerate() {
                if one.needs.is_empty() {
                    // After nvcc's dry run.
                    one.queued = Duration::from_millis(45);
                    self.ready.push_back((at, task));
                }
            }
            self.open += 1;
            self.active.push(Some((self.now, call)));
        }
    }

    fn start_tasks(&mut self) {
        let mut held = VecDeque::new();
        while let Some((at, number)) = self.ready.pop_front() {
            let Some((start, call)) = &mut self.active[at] else {
                continue;
            };
            let takes = call.takes[number];
            let task = &mut call.record.tasks[number];
            let from = self.now.max(*start + micros(task.queued)) - *start;
            let hit = task.state == State::Hit;
            let fits = self.held_kib + task.peak_kib <= self.shape.memory_kib || self.held_kib == 0;
            let free = self.free_slots.iter().position(|free| *free);
            let slot = match free.filter(|_| fits) {
                // What comes from the cache waits for nobody.
                _ if hit => None,
                Some(slot) => Some(slot),
                None => {
                    task.waited_for = Some(if free.is_some() {
                        Wait::Memory
                    } else {
                        Wait::Cpu
                    });
                    held.push_back((at, number));
                    continue;
                }
            };
            if let Some(slot) = slot {
                self.free_slots[slot] = false;
                self.held_kib += task.peak_kib;
            }
            task.slot = slot.and_then(|slot| u32::try_from(slot).ok());
            task.started = Duration::from_micros(from);
            let ends = *start + from + if hit { 3_000 } else { takes };
            self.running.push(Reverse((ends, at, number)));
        }
        self.ready = held;
    }

    fn end(&mut self, at: usize, number: usize, ends: u64) {
        let Some((start, call)) = &mut self.active[at] else {
            return;
        };
        let offset = Duration::from_micros(ends - *start);
        let task = &call.record.tasks[number];
        if let Some(slot) = task.slot {
            self.free_slots[slot as usize] = true;
            self.held_kib -= task.peak_kib;
        }
        call.record.tasks[number].finished = offset;
        let ended = |task: &Task| !task.finished.is_zero();
        for task in number + 1..call.record.tasks.len() {
            let needs = call.record.tasks[task].needs.clone();
            let complete = needs
                .iter()
                .all(|need| ended(&call.record.tasks[*need as usize]));
            let freed = needs.contains(&u32::try_from(number).unwrap_or(u32::MAX));
            if freed && complete {
                call.record.tasks[task].queued = offset;
                self.ready.push_back((at, task));
            }
        }
        if call.record.tasks.iter().all(ended) {
            call.record.wall = offset + Duration::from_millis(2);
            self.open -= 1;
            if let Some((_, call)) = self.active[at].take() {
                self.done.push(call.record);
            }
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The tasks of a call for some architectures, and how long each takes, in µs.
pub(crate) fn tasks(
    architectures: &[String],
    heavy: f64,
    from_cache: u64,
    random: &mut Random,
) -> (Vec<Task>, Vec<u64>) {
    let mut tasks = Vec::new();
    let mut takes = Vec::new();
    let mut add =
        |tool: &str, arch: Option<String>, label: &str, ms: f64, mib: f64, needs: &[u32]| {
            let ms = ms * random.spread();
            let hit = random.below(1000) < from_cache && tool != "host";
            let took = Duration::from_micros((ms * 1000.0) as u64);
            tasks.push(Task {
                tool: tool.into(),
                architecture: arch,
                label: label.into(),
                state: if hit { State::Hit } else { State::Ran },
                user: if hit {
                    Duration::ZERO
                } else {
                    took.mul_f64(0.93)
                },
                system: if hit {
                    Duration::ZERO
                } else {
                    took.mul_f64(0.05)
                },
                saved: if hit { took } else { Duration::ZERO },
                peak_kib: if hit {
                    0
                } else {
                    (mib * 1024.0 * random.spread()) as u64
                },
                input_bytes: (ms * 900.0) as u64,
                output_bytes: (ms * 350.0) as u64,
                needs: needs.to_vec(),
                ..Task::default()
            });
            takes.push((ms * 1000.0) as u64 + 1);
            u32::try_from(tasks.len() - 1).unwrap_or(0)
        };
    let pre = add("host", None, "preprocess", 700.0, 190.0, &[]);
    let front = add(
        "cudafe++",
        None,
        "split host and device code",
        900.0,
        420.0,
        &[pre],
    );
    let mut cubins = Vec::new();
    for arch in architectures {
        // Newer ones have more to choose from.
        let newer = 1.0 + f64::from(arch.len() as u32) * 0.12;
        let pre = add(
            "host",
            Some(format!("compute_{arch}")),
            "preprocess",
            650.0,
            180.0,
            &[],
        );
        let cicc = add(
            "cicc",
            Some(format!("compute_{arch}")),
            "compile to PTX",
            2600.0 * heavy * newer,
            900.0 * heavy,
            &[pre, front],
        );
        cubins.push(add(
            "ptxas",
            Some(format!("sm_{arch}")),
            "assemble",
            2100.0 * heavy * heavy * newer,
            600.0 * heavy,
            &[cicc],
        ));
    }
    let fat = add("fatbinary", None, "pack", 30.0, 30.0, &cubins);
    add("host", None, "compile", 1900.0, 520.0, &[front, fat]);
    (tasks, takes)
}

/// The parts that say what a call was and why it missed.
pub(crate) fn record(at: usize, shape: &Shape, source: String, outcome: Outcome) -> Invocation {
    let object = source.replace(".cu", ".o").replace('/', "_");
    let mut args = vec!["nvcc".to_owned(), "-O3".into(), "-std=c++17".into()];
    for arch in &shape.architectures {
        args.push(format!("-gencode=arch=compute_{arch},code=sm_{arch}"));
    }
    args.extend([
        "-c".into(),
        format!("/src/sample/{source}"),
        "-o".into(),
        object,
    ]);
    Invocation {
        id: at as u64 + 1,
        build: format!("sample-{}", shape.seed),
        driver: Some(format!("ninja -j{} (sample data)", shape.jobs)),
        host: "sample-machine".into(),
        args,
        directory: "/src/sample/build".into(),
        sources: vec![format!("/src/sample/{source}")],
        outcome,
        budget: Budget {
            slots: shape.slots,
            memory_kib: shape.memory_kib,
        },
        ..Invocation::default()
    }
}

/// What a call read, from a list of headers and their sizes.
pub(crate) fn read(headers: impl Iterator<Item = (String, u64)>) -> Headers {
    Headers::from_read(headers.map(|(path, bytes)| Header { path, bytes }))
}

/// One part of a key that changed.
pub(crate) fn change(kind: &str, name: &str, old: Option<&str>, new: Option<&str>) -> Change {
    Change {
        kind: kind.into(),
        name: name.into(),
        old: old.map(Into::into),
        new: new.map(Into::into),
    }
}
