//! Invented builds for tests, screenshots and documentation. Nothing in them was measured.
//!
//! A small simulation of a scheduler with slots and memory, so that the records agree with each
//! other as those of a real build do. The same description gives the same build.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::record::{InvocationRecord, Task, TaskEnd, Wait};

mod names;
mod planned;
mod random;
mod shape;

use planned::Planned;
use random::Random;
pub use shape::Shape;

/// A build of this shape, its records in the order they would be appended.
pub fn build(shape: &Shape) -> Vec<InvocationRecord> {
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
    done: Vec<InvocationRecord>,
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
            let hit = task.state == TaskEnd::Hit;
            let fits = self.held_kib + task.peak_kib <= self.shape.memory_kib || self.held_kib == 0;
            let free = self.free_slots.iter().position(|free| *free);
            let slot = match free.filter(|_| fits) {
                // A cached task does not wait for a slot.
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
