//! Plays a build on machines that are given by numbers, event by event.
//!
//! What is modelled: slots here with the longest way to the end first; steps that go when no slot is free, or always; one line
//! up and one down, each serving one transfer after the other; round trips; workers that take what came first; a step that waits
//! for a worker for too long and is started here. What is not: memory, a race with a step that a worker is at, workers that
//! differ, the toolchain's first journey.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use super::project::Project;

/// When a step goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goes {
    /// When no slot is free here: what warpcc does by itself.
    WhenFull,
    /// Whenever it may: `WARPCC_EXECUTOR_ALWAYS`.
    Always,
}

/// The machine of the user, the line, the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Commands here at a time.
    pub slots: usize,
    /// Of the processor that the steps were measured on.
    pub speed_here: f64,
    pub workers: usize,
    pub speed_there: f64,
    pub goes: Goes,
    /// Bytes in a second.
    pub up: f64,
    /// Bytes in a second.
    pub down: f64,
    /// Seconds there and back.
    pub round_trip: f64,
    /// Seconds that an action takes on its worker beside its command.
    pub around: f64,
}

/// What a build came to, and what it could not be faster than.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub wall: f64,
    /// Steps that ran elsewhere.
    pub away: usize,
    /// Each with what it is; the largest says what limits.
    pub bounds: [(String, f64); 5],
}

impl Outcome {
    /// The bound that is nearest to the wall.
    pub fn limit(&self) -> &(String, f64) {
        let largest = self.bounds.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        largest.unwrap_or(&self.bounds[0])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A step here ended.
    Here(usize),
    /// Its files are there, and the order to run it.
    Arrived(usize),
    /// A worker ended.
    Worked(usize),
    /// Its results are here.
    Back(usize),
    /// It should have been here by now.
    Late,
}

/// Before this, in seconds, nobody is late; nor before twice the time that it takes here (docs/remote-execution.md).
const PATIENCE: f64 = 2.0;

/// A moment, in an order that a heap can have.
#[derive(PartialEq)]
struct Moment(f64);

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A line that serves one transfer after the other.
#[derive(Default)]
struct Line {
    free_at: f64,
    bytes: f64,
}

impl Line {
    fn send(&mut self, now: f64, bytes: f64, speed: f64) -> f64 {
        self.bytes += bytes;
        self.free_at = self.free_at.max(now) + bytes / speed;
        if bytes > 0.0 { self.free_at } else { now }
    }
}

struct Build<'a> {
    project: &'a Project,
    setting: Setting,
    now: f64,
    /// When the last step was done.
    ended: f64,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    /// How many of its needs a step still waits for.
    open: Vec<usize>,
    dependents: Vec<Vec<usize>>,
    /// Seconds from a step's start to the end of its file.
    tail: Vec<f64>,
    waiting_here: BTreeSet<(Reverse<Tail>, usize)>,
    slots_free: usize,
    waiting_there: VecDeque<usize>,
    workers_free: usize,
    up: Line,
    down: Line,
    went: Vec<bool>,
    /// When a step that went is late.
    late: Vec<f64>,
}

/// Microseconds: a number that a set can order.
type Tail = u64;

/// Plays the whole build.
pub fn run(project: &Project, setting: Setting) -> Outcome {
    let count = project.steps.len();
    let mut dependents = vec![Vec::new(); count];
    for (index, step) in project.steps.iter().enumerate() {
        for &need in &step.needs {
            dependents[need].push(index);
        }
    }
    let mut tail = vec![0.0_f64; count];
    for index in (0..count).rev() {
        let after = dependents[index].iter().map(|&next| tail[next]);
        tail[index] = project.steps[index].seconds + after.fold(0.0, f64::max);
    }
    let mut build = Build {
        project,
        setting,
        now: 0.0,
        ended: 0.0,
        events: BinaryHeap::new(),
        open: project.steps.iter().map(|step| step.needs.len()).collect(),
        dependents,
        tail,
        waiting_here: BTreeSet::new(),
        slots_free: setting.slots,
        waiting_there: VecDeque::new(),
        workers_free: setting.workers,
        up: Line::default(),
        down: Line::default(),
        went: vec![false; count],
        late: vec![0.0; count],
    };
    for index in 0..count {
        if build.open[index] == 0 {
            build.ready(index);
        }
    }
    build.settle();
    while let Some(Reverse((Moment(now), event))) = build.events.pop() {
        build.now = now;
        build.happen(event);
        build.settle();
    }
    build.outcome()
}

impl Build<'_> {
    fn at(&mut self, when: f64, event: Event) {
        self.events.push(Reverse((Moment(when), event)));
    }

    /// All that it needs is there. Whether it goes is seen when the others that became ready have been seen too.
    fn ready(&mut self, index: usize) {
        if self.project.steps[index].leaves
            && self.setting.workers > 0
            && self.setting.goes == Goes::Always
        {
            self.send(index);
        } else {
            let tail = (self.tail[index] * 1e6) as Tail;
            self.waiting_here.insert((Reverse(tail), index));
        }
    }

    /// Gives free slots to who waits longest for the end, and sends away what may go and has none.
    fn settle(&mut self) {
        while self.slots_free > 0
            && let Some((_, index)) = self.waiting_here.pop_first()
        {
            self.slots_free -= 1;
            let took = self.project.steps[index].seconds / self.setting.speed_here;
            self.at(self.now + took, Event::Here(index));
        }
        if self.setting.workers > 0 {
            let steps = &self.project.steps;
            let leave: Vec<_> = self
                .waiting_here
                .iter()
                .filter(|(_, index)| steps[*index].leaves)
                .copied()
                .collect();
            for entry in leave {
                self.waiting_here.remove(&entry);
                self.send(entry.1);
            }
        }
        while self.slots_free > 0
            && self.waiting_here.is_empty()
            && let Some(at) = self
                .waiting_there
                .iter()
                .position(|&index| self.late[index] <= self.now)
            && let Some(index) = self.waiting_there.remove(at)
        {
            self.slots_free -= 1;
            self.went[index] = false;
            let took = self.project.steps[index].seconds / self.setting.speed_here;
            self.at(self.now + took, Event::Here(index));
        }
        while self.workers_free > 0
            && let Some(index) = self.waiting_there.pop_front()
        {
            self.workers_free -= 1;
            let step = &self.project.steps[index];
            let took = step.seconds / self.setting.speed_there + self.setting.around;
            self.at(self.now + took, Event::Worked(index));
        }
    }

    fn send(&mut self, index: usize) {
        self.went[index] = true;
        let step = &self.project.steps[index];
        self.late[index] = self.now + PATIENCE.max(2.0 * step.seconds / self.setting.speed_here);
        self.at(self.late[index], Event::Late);
        // What another step wrote there is there.
        let is_new = step.needs.iter().any(|&need| !self.went[need]);
        let bytes = if is_new { step.reads } else { 0.0 };
        // What is missing, perhaps the upload, and the order to run it, half of whose way is back.
        let trips = if bytes > 0.0 { 2.5 } else { 1.5 };
        let sent = self.up.send(self.now, bytes, self.setting.up);
        self.at(
            sent + trips * self.setting.round_trip,
            Event::Arrived(index),
        );
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Here(index) => {
                self.slots_free += 1;
                self.done(index);
            }
            Event::Arrived(index) => self.waiting_there.push_back(index),
            Event::Worked(index) => {
                self.workers_free += 1;
                let bytes = self.project.steps[index].writes;
                // The other half, and the request for what was written.
                let trips = if bytes > 0.0 { 1.5 } else { 0.5 };
                let came = self.down.send(self.now, bytes, self.setting.down);
                self.at(came + trips * self.setting.round_trip, Event::Back(index));
            }
            Event::Back(index) => self.done(index),
            // What became of it is seen next.
            Event::Late => {}
        }
    }

    fn done(&mut self, index: usize) {
        self.ended = self.now;
        for next in std::mem::take(&mut self.dependents[index]) {
            self.open[next] -= 1;
            if self.open[next] == 0 {
                self.ready(next);
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let setting = &self.setting;
        let steps = &self.project.steps;
        let seconds = |leaves: bool| -> f64 {
            let some = steps.iter().filter(|step| step.leaves == leaves);
            some.map(|step| step.seconds).sum()
        };
        let (stays, goes) = (seconds(false), seconds(true));
        let here = setting.slots as f64 * setting.speed_here;
        let there = setting.workers as f64 * setting.speed_there;
        // With all that may leave gone, the machine still has the rest to do; and all together have all to do.
        let processors = match setting.goes {
            Goes::Always if there > 0.0 => goes / there,
            _ => (stays + goes) / (here + there),
        };
        let longest = (0..steps.len()).max_by(|&a, &b| self.tail[a].total_cmp(&self.tail[b]));
        let mut way = Vec::new();
        let mut next = longest;
        while let Some(index) = next {
            way.push(index);
            let mut after = (0..steps.len()).filter(|&i| steps[i].needs.contains(&index));
            next = after
                .by_ref()
                .max_by(|&a, &b| self.tail[a].total_cmp(&self.tail[b]));
        }
        let heaviest = way
            .iter()
            .max_by(|&&a, &&b| steps[a].seconds.total_cmp(&steps[b].seconds));
        let name = heaviest.map_or(String::new(), |&index| {
            format!("{} of {}", steps[index].name, steps[index].file)
        });
        let fastest = setting.speed_here.max(setting.speed_there);
        let chain = longest.map_or(0.0, |index| self.tail[index]) / fastest;
        Outcome {
            wall: self.ended,
            away: self.went.iter().filter(|&&went| went).count(),
            bounds: [
                ("processors".to_owned(), processors),
                ("what stays here".to_owned(), stays / here),
                ("the line up".to_owned(), self.up.bytes / setting.up),
                ("the line down".to_owned(), self.down.bytes / setting.down),
                (format!("the longest file: {name}"), chain),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::simulate::project::Step;

    const SETTING: Setting = Setting {
        slots: 1,
        speed_here: 1.0,
        workers: 0,
        speed_there: 1.0,
        goes: Goes::WhenFull,
        up: 100.0,
        down: 50.0,
        round_trip: 0.0,
        around: 0.0,
    };

    /// Preprocessing of 1 s that writes 200 bytes, cicc of 4 s that writes 100, a host compile of 2 s.
    fn files(count: usize) -> Project {
        let step = |name: &str, seconds, reads, writes, needs: &[usize]| Step {
            file: "a.cu".to_owned(),
            name: name.to_owned(),
            seconds,
            reads,
            writes,
            needs: needs.to_vec(),
            leaves: name == "cicc",
        };
        let one = Project {
            steps: vec![
                step("preprocess", 1.0, 0.0, 200.0, &[]),
                step("cicc", 4.0, 200.0, 100.0, &[0]),
                step("host", 2.0, 100.0, 1.0, &[1]),
            ],
        };
        one.repeated(count)
    }

    #[test]
    fn alone_the_slots_share_the_work() {
        assert_eq!(run(&files(1), SETTING).wall, 7.0);
        assert_eq!(run(&files(3), SETTING).wall, 21.0);
        let two = Setting {
            slots: 2,
            ..SETTING
        };
        assert_eq!(run(&files(2), two).wall, 7.0);
        let slow = Setting {
            speed_here: 0.5,
            ..SETTING
        };
        let outcome = run(&files(1), slow);
        assert_eq!((outcome.wall, outcome.away), (14.0, 0));
    }

    #[test]
    fn a_step_that_goes_takes_its_bytes_and_trips_along() {
        let away = Setting {
            workers: 1,
            goes: Goes::Always,
            ..SETTING
        };
        // 1 here, 2 up, 4 there, 2 down, 2 here.
        assert_eq!(run(&files(1), away).wall, 11.0);
        let far = Setting {
            round_trip: 0.5,
            ..away
        };
        assert_eq!(run(&files(1), far).wall, 13.0);
        let slow = Setting {
            speed_there: 0.5,
            around: 1.0,
            ..away
        };
        assert_eq!(run(&files(1), slow).wall, 16.0);
    }

    #[test]
    fn one_line_and_one_worker_are_shared() {
        let away = Setting {
            slots: 2,
            workers: 2,
            goes: Goes::Always,
            ..SETTING
        };
        // The second file's bytes go after the first one's, up and down: 1, 2 + 2, 4, 2, 2.
        assert_eq!(run(&files(2), away).wall, 13.0);
        let one = Setting { workers: 1, ..away };
        // The worker is busy from 3 to 11.
        assert_eq!(run(&files(2), one).wall, 15.0);
    }

    #[test]
    fn only_what_finds_no_slot_goes() {
        let full = Setting {
            workers: 1,
            ..SETTING
        };
        assert_eq!(run(&files(1), full).away, 0);
        let outcome = run(&files(2), full);
        assert_eq!(outcome.away, 1);
        assert!(outcome.wall < run(&files(2), SETTING).wall);
    }

    #[test]
    fn what_waits_too_long_for_a_worker_is_done_here() {
        let slow = Setting {
            workers: 1,
            speed_there: 0.1,
            goes: Goes::Always,
            up: 1e9,
            down: 1e9,
            ..SETTING
        };
        let outcome = run(&files(2), slow);
        // The worker has the first from 1 to 41; the second is late at 10.
        assert!((outcome.wall - 43.0).abs() < 1e-3, "{}", outcome.wall);
        assert_eq!(outcome.away, 1);
    }

    #[test]
    fn what_limits_is_named() {
        let many = Setting {
            slots: 64,
            workers: 64,
            up: 1e9,
            down: 1e9,
            ..SETTING
        };
        let (name, seconds) = run(&files(64), many).limit().clone();
        assert_eq!(
            (name.as_str(), seconds),
            ("the longest file: cicc of a.cu", 7.0)
        );
        let thin = Setting {
            up: 10.0,
            goes: Goes::Always,
            ..many
        };
        assert_eq!(run(&files(64), thin).limit().0, "the line up");
        let small = Setting {
            slots: 1,
            goes: Goes::Always,
            ..many
        };
        assert_eq!(run(&files(64), small).limit().0, "what stays here");
        assert_eq!(run(&files(64), SETTING).limit().0, "processors");
    }
}
