//! The record of one call of warpcc. Every report is made from such records.
//!
//! A record has measurements, and nothing that can be computed from them. Times are offsets from the call's own
//! start. `since_boot` places the call among others, because the wall clock may be set while a build runs. In
//! JSON a duration is a number of seconds; in the log it is a whole number of microseconds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// At most this many headers of one call are kept, the largest first.
pub const HEADERS_KEPT: usize = 48;
/// A command line is cut to about this many bytes: a record has to stay cheap to append.
pub const COMMAND_KEPT: usize = 16 << 10;

/// One call of warpcc, from its start to its exit code.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InvocationRecord {
    /// A number that no other call has; see [`crate::build_id::Process::invocation_id`].
    pub id: u64,
    /// The build it belongs to; see [`crate::build_id::BuildId`].
    pub build: String,
    /// The command line of what drives the build, such as `ninja -j16`.
    pub driver: Option<String>,
    /// The name of the machine.
    pub host: String,
    /// When it started: nanoseconds since 1970. For people; a clock may be set back.
    pub started_unix_ns: u64,
    /// When it started: nanoseconds since the machine did, which only go forward.
    /// Zero where that is not known.
    pub since_boot_ns: u64,
    /// How long it took.
    #[serde(rename = "wall_s", with = "crate::seconds")]
    pub wall: Duration,
    /// The command line, the compiler first. Cut where it is very long.
    pub args: Vec<String>,
    /// The directory it was called in.
    pub directory: String,
    /// The files it compiles, as the command line names them.
    pub sources: Vec<String>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// Why the call as a whole was not answered from the cache; empty where it was, or where
    /// the cache had never seen anything like it.
    pub missed: Vec<KeyPartChange>,
    /// Why the finished call as a whole was not stored, where it should have been: the next one misses as well.
    pub not_kept: Option<String>,
    /// For a direct hit: how long the call took when it last ran.
    #[serde(rename = "saved_s", with = "crate::seconds")]
    pub saved: Duration,
    /// The commands that it ran, in nvcc's order.
    pub tasks: Vec<Task>,
    /// The headers it read.
    pub headers: Headers,
    /// The machine's limits at that time.
    pub budget: Budget,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Answered from the cache as a whole.
    DirectHit,
    /// Its steps were run, or found one by one.
    #[default]
    Built,
    /// Bypassed, because something was not understood.
    Fallback {
        /// The option or text that was not understood.
        reason: String,
    },
    /// Bypassed, because there is nothing to cache.
    Passed,
    /// A step failed.
    Failed {
        /// The exit code.
        code: i32,
    },
}

/// A part of the key that differs from the one in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyPartChange {
    /// The kind of part: `option`, `header`, `source`, `host compiler`, `environment`.
    pub kind: String,
    /// The name of the part.
    pub name: String,
    /// The value that the cache remembers, where it had one.
    pub old: Option<String>,
    /// The value now, where there is one.
    pub new: Option<String>,
}

/// One step of a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Task {
    /// The tool, in NVIDIA's word: `cicc`, `ptxas`, `host`.
    pub tool: String,
    /// The architecture it works for, if it works for one: `sm_90a`, `compute_80`.
    pub architecture: Option<String>,
    /// A description in a few words.
    pub label: String,
    /// How it ended.
    pub state: TaskEnd,
    /// When everything it needs was there.
    #[serde(rename = "queued_s", with = "crate::seconds")]
    pub queued: Duration,
    /// When it was started.
    #[serde(rename = "started_s", with = "crate::seconds")]
    pub started: Duration,
    /// When it ended.
    #[serde(rename = "finished_s", with = "crate::seconds")]
    pub finished: Duration,
    /// Processor time in its own code.
    #[serde(rename = "user_s", with = "crate::seconds")]
    pub user: Duration,
    /// Processor time in the system.
    #[serde(rename = "system_s", with = "crate::seconds")]
    pub system: Duration,
    /// The most memory it held, KiB.
    pub peak_kib: u64,
    /// The reason for waiting between `queued` and `started`, if it had to wait.
    pub waited_for: Option<Wait>,
    /// How often it was stopped to free memory, and started again.
    pub evicted: u32,
    /// The processor slot it held.
    pub slot: Option<u32>,
    /// Bytes of the files it reads that were made for it.
    pub input_bytes: u64,
    /// Bytes of the files it wrote.
    pub output_bytes: u64,
    /// Why its result was not stored, where it should have been.
    pub not_stored: Option<String>,
    /// The tasks of this call whose files it reads, by their place in [`InvocationRecord::tasks`].
    pub needs: Vec<u32>,
    /// For a hit: how long the step took when it last ran.
    #[serde(rename = "saved_s", with = "crate::seconds")]
    pub saved: Duration,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// It ran.
    #[default]
    Ran,
    /// Its result came from the cache.
    Hit,
    /// It failed with this exit code.
    Failed(i32),
    /// It was not needed, or what it needs failed.
    Skipped,
}

/// The resource that a ready task waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A processor slot.
    Cpu,
    /// Memory.
    Memory,
    /// A token of make's or ninja's jobserver.
    Token,
}

/// The headers that a call read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Headers {
    /// The number of different files.
    pub count: u32,
    /// Their size together.
    pub bytes: u64,
    /// The largest ones, largest first.
    pub largest: Vec<Header>,
}

/// A file that was included.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Header {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// The limits of the machine's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Tasks at once; zero where there was no limit, or no task.
    pub slots: u32,
    /// Memory for all tasks together, KiB; zero where there was no limit, or no task.
    pub memory_kib: u64,
}

impl Headers {
    /// Keeps the largest of all files read; a file that several passes read counts once.
    pub fn from_read(read: impl IntoIterator<Item = Header>) -> Self {
        let mut all: Vec<Header> = read.into_iter().collect();
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        all.dedup_by(|a, b| a.path == b.path);
        let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let bytes = all
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(one.bytes));
        all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
        all.truncate(HEADERS_KEPT);
        Self {
            count,
            bytes,
            largest: all,
        }
    }
}

impl Task {
    /// How long it held a slot; zero where it did not run, or where its clock went backwards.
    pub fn elapsed(&self) -> Duration {
        match self.state {
            TaskEnd::Skipped => Duration::ZERO,
            _ => self.finished.saturating_sub(self.started),
        }
    }

    /// Processor time altogether.
    pub fn cpu(&self) -> Duration {
        self.user.saturating_add(self.system)
    }

    /// Whether a process was started for it.
    pub fn ran(&self) -> bool {
        matches!(self.state, TaskEnd::Ran | TaskEnd::Failed(_))
    }
}

impl InvocationRecord {
    /// Whether the command line in the record is incomplete.
    pub fn args_are_cut(&self) -> bool {
        let kept: usize = self.args.iter().map(String::len).sum();
        kept > COMMAND_KEPT
    }

    /// Cuts long parts of a record that would add little information.
    pub(crate) fn shorten(&mut self) {
        let mut left = COMMAND_KEPT;
        let whole = self.args.len();
        for (at, word) in self.args.iter_mut().enumerate() {
            if word.len() > left {
                cut(word, left);
                let dropped = whole - at - 1;
                self.args.truncate(at + 1);
                if dropped > 0 {
                    self.args.push(format!("… and {dropped} more"));
                }
                break;
            }
            left -= word.len();
        }
        self.headers.largest.truncate(HEADERS_KEPT);
        for change in &mut self.missed {
            let values = change.old.iter_mut().chain(change.new.iter_mut());
            values.for_each(|value| cut(value, 512));
        }
        self.missed.truncate(32);
    }
}

/// Cuts a text between two characters, and marks the place.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(path: &str, bytes: u64) -> Header {
        Header {
            path: path.into(),
            bytes,
        }
    }

    #[test]
    fn the_largest_headers_are_kept_once() {
        let read = (0..200).map(|at| header(&format!("h{}", at % 100), at % 100));
        let headers = Headers::from_read(read);
        assert_eq!((headers.count, headers.bytes), (100, 4950));
        assert_eq!(headers.largest.len(), HEADERS_KEPT);
        assert_eq!(headers.largest[0], header("h99", 99));
    }

    #[test]
    fn a_long_command_is_cut_at_a_character() {
        let mut call = InvocationRecord {
            args: vec!["nvcc".into(), "ä".repeat(COMMAND_KEPT), "-c".into()],
            ..InvocationRecord::default()
        };
        call.shorten();
        assert_eq!(call.args.len(), 3);
        assert!(call.args[1].ends_with("ä…"));
        assert_eq!(call.args[2], "… and 1 more");
        assert!(call.args.iter().map(String::len).sum::<usize>() < COMMAND_KEPT + 64);
    }

    #[test]
    fn a_clock_that_went_backwards_gives_no_time() {
        let task = Task {
            started: Duration::from_secs(5),
            finished: Duration::from_secs(2),
            ..Task::default()
        };
        assert_eq!(task.elapsed(), Duration::ZERO);
    }

    #[test]
    fn durations_are_seconds_in_json_and_small_when_stored() {
        let task = Task {
            tool: "cicc".into(),
            started: Duration::from_micros(1_500_001),
            ..Task::default()
        };
        let json = serde_json::to_value(&task).unwrap();
        assert_eq!(json["started_s"], 1.500_001);
        assert_eq!(json["state"], "ran");
        let stored = postcard::to_stdvec(&task).unwrap();
        assert!(stored.len() < 32, "{}", stored.len());
        assert_eq!(postcard::from_bytes::<Task>(&stored).unwrap(), task);
    }
}
