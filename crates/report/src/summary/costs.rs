//! Sums up time by file, header, architecture and tool.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use serde::Serialize;

use crate::build::{Build, BuildCall};
use crate::record::{Task, TaskEnd};

/// Tools that work on the text of the program, headers included.
const READ_TEXT: [&str; 4] = ["host", "cudafe++", "cicc", "nvcc"];
/// Tools that are run once per architecture.
const PER_ARCHITECTURE: [&str; 2] = ["cicc", "ptxas"];
/// This many headers are named.
const HEADERS_NAMED: usize = 500;

/// The cost of one file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileCost {
    /// The file, below the folder that all sources share.
    pub file: String,
    /// Calls that compiled it.
    pub calls: usize,
    /// Processor time of its tasks that ran.
    #[serde(rename = "cpu_s", serialize_with = "crate::seconds::serialize")]
    pub cpu: Duration,
    /// Its longest call.
    #[serde(rename = "longest_s", serialize_with = "crate::seconds::serialize")]
    pub longest: Duration,
    /// Tasks that ran.
    pub ran: usize,
    /// Tasks that came from the cache, those of direct hits not counted.
    pub hits: usize,
    /// The largest task's memory, KiB.
    pub peak_kib: u64,
    /// The processor time that the cached tasks took when they ran.
    #[serde(rename = "saved_s", serialize_with = "crate::seconds::serialize")]
    pub saved: Duration,
}

/// The estimated cost of one header.
///
/// Of the processor time that a call spent in tools that read the program's text, a header is
/// given the share that its bytes have in all bytes read. A small header that includes large
/// ones, or makes much code, costs more than that says.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HeaderCost {
    /// The header.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Calls that read it and were not answered from the cache.
    pub calls: usize,
    /// Its share of the processor time of those calls.
    #[serde(
        rename = "estimated_cpu_s",
        serialize_with = "crate::seconds::serialize"
    )]
    pub estimated_cpu: Duration,
}

/// The cost of one architecture: its cicc and its ptxas.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ArchitectureCost {
    /// Its number, with its letter: `90a`.
    pub architecture: String,
    /// Processor time of the tasks that ran.
    #[serde(rename = "cpu_s", serialize_with = "crate::seconds::serialize")]
    pub cpu: Duration,
    /// The part of that in cicc.
    #[serde(rename = "cicc_s", serialize_with = "crate::seconds::serialize")]
    pub cicc: Duration,
    /// The part of that in ptxas.
    #[serde(rename = "ptxas_s", serialize_with = "crate::seconds::serialize")]
    pub ptxas: Duration,
    /// Tasks that ran.
    pub ran: usize,
    /// Tasks that came from the cache.
    pub hits: usize,
    /// The processor time that the cached tasks took when they ran.
    #[serde(rename = "saved_s", serialize_with = "crate::seconds::serialize")]
    pub saved: Duration,
    /// The largest task's memory, KiB.
    pub peak_kib: u64,
}

/// The cost of one more architecture like the present ones.
///
/// For each file the mean of its architectures, where a step from the cache counts with what it
/// took when it ran; summed over the files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Another {
    /// Processor time.
    #[serde(rename = "cpu_s", serialize_with = "crate::seconds::serialize")]
    pub cpu: Duration,
    /// Wall time, at as many tasks at once as this build had on average.
    #[serde(rename = "wall_s", serialize_with = "crate::seconds::serialize")]
    pub wall: Duration,
    /// How many files compile device code.
    pub files: usize,
}

/// The cost of one tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolCost {
    /// The tool.
    pub tool: String,
    /// Processor time of its tasks that ran.
    #[serde(rename = "cpu_s", serialize_with = "crate::seconds::serialize")]
    pub cpu: Duration,
    /// How long its tasks took together.
    #[serde(rename = "elapsed_s", serialize_with = "crate::seconds::serialize")]
    pub elapsed: Duration,
    /// Tasks that ran.
    pub ran: usize,
    /// Tasks that came from the cache.
    pub hits: usize,
    /// The largest task's memory, KiB.
    pub peak_kib: u64,
    /// The processor time that the cached tasks took when they ran.
    #[serde(rename = "saved_s", serialize_with = "crate::seconds::serialize")]
    pub saved: Duration,
}

/// The architecture's number, whether it stands for code or for PTX.
pub(crate) fn number_of(architecture: &str) -> &str {
    let prefixes = ["sm_", "compute_", "lto_"];
    let rest = prefixes
        .iter()
        .find_map(|prefix| architecture.strip_prefix(prefix));
    rest.unwrap_or(architecture)
}

/// Entries by key, in the order they came.
struct Table<K, V> {
    rows: Vec<V>,
    place: HashMap<K, usize>,
}

impl<K: Hash + Eq, V> Table<K, V> {
    fn new() -> Self {
        Self {
            rows: Vec::new(),
            place: HashMap::new(),
        }
    }

    fn row(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        let at = *self.place.entry(key).or_insert_with(|| {
            self.rows.push(new());
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }
}

pub(super) fn files(build: &Build) -> Vec<FileCost> {
    let mut table: Table<&str, FileCost> = Table::new();
    for call in &build.calls {
        let row = table.row(&call.file, || FileCost {
            file: call.file.clone(),
            ..FileCost::default()
        });
        row.calls += 1;
        row.longest = row.longest.max(call.finished.saturating_sub(call.started));
        row.saved = row.saved.saturating_add(call.record.saved);
        for task in &call.record.tasks {
            row.cpu = row.cpu.saturating_add(cpu(task));
            row.peak_kib = row.peak_kib.max(task.peak_kib);
            count(task, &mut row.ran, &mut row.hits, &mut row.saved);
        }
    }
    let mut rows = table.rows;
    rows.sort_by(|a, b| (b.cpu, b.longest, &a.file).cmp(&(a.cpu, a.longest, &b.file)));
    rows
}

pub(super) fn tools(build: &Build) -> Vec<ToolCost> {
    let mut table: Table<&str, ToolCost> = Table::new();
    for (span, _, task) in build.tasks() {
        let row = table.row(&task.tool, || ToolCost {
            tool: task.tool.clone(),
            ..ToolCost::default()
        });
        row.cpu = row.cpu.saturating_add(cpu(task));
        if task.ran() {
            row.elapsed = row.elapsed.saturating_add(span.elapsed());
        }
        row.peak_kib = row.peak_kib.max(task.peak_kib);
        count(task, &mut row.ran, &mut row.hits, &mut row.saved);
    }
    let mut rows = table.rows;
    rows.sort_by(|a, b| (b.cpu, &a.tool).cmp(&(a.cpu, &b.tool)));
    rows
}

pub(super) fn architectures(build: &Build) -> Vec<ArchitectureCost> {
    let mut table: Table<&str, ArchitectureCost> = Table::new();
    for (_, _, task) in build.tasks() {
        let Some(number) = device(task) else { continue };
        let row = table.row(number, || ArchitectureCost {
            architecture: number.to_owned(),
            ..ArchitectureCost::default()
        });
        let cpu = cpu(task);
        row.cpu = row.cpu.saturating_add(cpu);
        let part = if task.tool == "cicc" {
            &mut row.cicc
        } else {
            &mut row.ptxas
        };
        *part = part.saturating_add(cpu);
        row.peak_kib = row.peak_kib.max(task.peak_kib);
        count(task, &mut row.ran, &mut row.hits, &mut row.saved);
    }
    let mut rows = table.rows;
    rows.sort_by(|a, b| (b.cpu, &a.architecture).cmp(&(a.cpu, &b.architecture)));
    rows
}

pub(super) fn another(build: &Build, mean_running: f64) -> Option<Another> {
    let mut by_file: BTreeMap<&str, BTreeMap<&str, Duration>> = BTreeMap::new();
    for (_, call, task) in build.tasks() {
        let Some(number) = device(task) else { continue };
        let took = if task.state == TaskEnd::Hit {
            task.saved
        } else {
            cpu(task)
        };
        let sum = by_file
            .entry(&call.file)
            .or_default()
            .entry(number)
            .or_default();
        *sum = sum.saturating_add(took);
    }
    let mean = |costs: &BTreeMap<&str, Duration>| {
        let sum = costs
            .values()
            .fold(Duration::ZERO, |sum, cost| sum.saturating_add(*cost));
        sum / u32::try_from(costs.len()).unwrap_or(u32::MAX).max(1)
    };
    let cpu = by_file
        .values()
        .map(mean)
        .fold(Duration::ZERO, Duration::saturating_add);
    (!by_file.is_empty()).then(|| Another {
        cpu,
        wall: Duration::try_from_secs_f64(cpu.as_secs_f64() / mean_running.max(1.0)).unwrap_or(cpu),
        files: by_file.len(),
    })
}

pub(super) fn headers(build: &Build) -> Vec<HeaderCost> {
    let mut table: Table<&str, HeaderCost> = Table::new();
    for call in &build.calls {
        let text = text_cpu(call);
        let read = call.record.headers.bytes.max(1);
        if text.is_zero() {
            continue;
        }
        for header in &call.record.headers.largest {
            let row = table.row(&header.path, || HeaderCost {
                path: header.path.clone(),
                ..HeaderCost::default()
            });
            row.calls += 1;
            row.bytes = row.bytes.max(header.bytes);
            let share = (header.bytes as f64 / read as f64).min(1.0);
            row.estimated_cpu = row.estimated_cpu.saturating_add(text.mul_f64(share));
        }
    }
    let mut rows = table.rows;
    rows.sort_by(|a, b| (b.estimated_cpu, &a.path).cmp(&(a.estimated_cpu, &b.path)));
    rows.truncate(HEADERS_NAMED);
    rows
}

/// Processor time of a call in tools that read the program's text.
pub(crate) fn text_cpu(call: &BuildCall) -> Duration {
    let tasks = call.record.tasks.iter();
    tasks
        .filter(|task| READ_TEXT.contains(&task.tool.as_str()))
        .map(cpu)
        .fold(Duration::ZERO, Duration::saturating_add)
}

/// The architecture's number, for a task that is there once per architecture.
fn device(task: &Task) -> Option<&str> {
    let known = PER_ARCHITECTURE.contains(&task.tool.as_str());
    task.architecture
        .as_deref()
        .filter(|_| known)
        .map(number_of)
}

/// Processor time that was spent in this build.
fn cpu(task: &Task) -> Duration {
    if task.ran() {
        task.cpu()
    } else {
        Duration::ZERO
    }
}

fn count(task: &Task, ran: &mut usize, hits: &mut usize, saved: &mut Duration) {
    match task.state {
        TaskEnd::Ran | TaskEnd::Failed(_) => *ran += 1,
        TaskEnd::Hit => {
            *hits += 1;
            *saved = saved.saturating_add(task.saved);
        }
        TaskEnd::Skipped => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Header, Headers, InvocationRecord};

    fn task(tool: &str, architecture: Option<&str>, seconds: u64) -> Task {
        Task {
            tool: tool.into(),
            architecture: architecture.map(Into::into),
            finished: Duration::from_secs(seconds),
            user: Duration::from_secs(seconds),
            ..Task::default()
        }
    }

    fn build(tasks: Vec<Task>, headers: &[(&str, u64)]) -> Build {
        let headers = headers.iter().map(|(path, bytes)| Header {
            path: (*path).into(),
            bytes: *bytes,
        });
        Build::new(vec![InvocationRecord {
            directory: "/p".into(),
            sources: vec!["a.cu".into()],
            tasks,
            headers: Headers::from_read(headers),
            ..InvocationRecord::default()
        }])
    }

    #[test]
    fn code_and_ptx_of_an_architecture_are_one() {
        let mut hit = task("ptxas", Some("sm_80"), 0);
        hit.state = TaskEnd::Hit;
        hit.saved = Duration::from_secs(4);
        let build = build(
            vec![
                task("cicc", Some("compute_90a"), 10),
                task("ptxas", Some("sm_90a"), 6),
                task("cicc", Some("compute_80"), 8),
                hit,
                task("host", Some("compute_80"), 100),
            ],
            &[],
        );
        let rows = architectures(&build);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].architecture, "90a");
        assert_eq!(rows[0].cpu, Duration::from_secs(16));
        assert_eq!((rows[1].ran, rows[1].hits), (1, 1));
        // (16 + 8 + 4 from the cache) for two architectures.
        let another = another(&build, 2.0).expect("has device code");
        assert_eq!(another.cpu, Duration::from_secs(14));
        assert_eq!(another.wall, Duration::from_secs(7));
    }

    #[test]
    fn headers_share_the_time_by_their_bytes() {
        let build = build(
            vec![task("cicc", None, 8), task("ptxas", None, 100)],
            &[("big.h", 300), ("small.h", 100)],
        );
        let rows = headers(&build);
        assert_eq!(rows[0].path, "big.h");
        assert_eq!(rows[0].estimated_cpu, Duration::from_secs(6));
        assert_eq!(rows[1].estimated_cpu, Duration::from_secs(2));
    }

    #[test]
    fn nothing_costs_nothing() {
        let build = Build::new(Vec::new());
        assert_eq!(another(&build, 0.0), None);
        assert!(files(&build).is_empty() && headers(&build).is_empty());
    }
}
