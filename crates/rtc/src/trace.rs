//! Writes each request as an event of Chrome's trace format, for ui.perfetto.dev and chrome://tracing (`WARPCC_RTC_TRACE`).
//!
//! Any number of processes may add to a file, one at a time under a lock of the file. Whenever none of them writes, the file
//! is a whole JSON list.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::event::CacheEvent;
use crate::found::Found;
use crate::record::lock_soon;

/// A shorter hit in memory is left out: a program has millions of them, and to write one would take longer.
const LONG: Duration = Duration::from_millis(1);
const BEGIN: &[u8] = b"[\n";
const BETWEEN: &[u8] = b",\n";
const END: &[u8] = b"\n]\n";

/// A file for events.
#[derive(Debug)]
pub(crate) struct Tracer {
    path: PathBuf,
    /// The process that has written its name. A child made by `fork` writes its own.
    named: AtomicU32,
}

impl Tracer {
    /// The tracer for the file that `environment` names.
    pub(crate) fn from_environment(environment: &Environment) -> Option<Self> {
        let path = environment.own_path(crate::environment::TRACE)?;
        Some(Self::at(path))
    }

    /// A tracer for the file `path`.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            named: AtomicU32::new(0),
        }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// It cannot be written; the error is a text for the user.
    pub(crate) fn add(&self, event: &CacheEvent<'_>) -> Result<(), String> {
        if matches!(event.outcome, Ok(Found::Memory)) && event.took < LONG {
            return Ok(());
        }
        let process = std::process::id();
        let mut lines = Vec::new();
        if self.named.swap(process, Ordering::Relaxed) != process {
            lines.push(name_of(process));
        }
        lines.push(slice(event, process));
        self.append(&lines)
            .map_err(|error| format!("{} is not a whole trace: {error}", self.path.display()))
    }

    fn append(&self, events: &[Value]) -> io::Result<()> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        // Closing the file releases the lock.
        if !lock_soon(&file, Instant::now())? {
            return Err(io::Error::other("another process keeps it locked"));
        }
        let size = file.metadata()?.len();
        let (at, opening) = match size {
            0 => (0, BEGIN),
            _ => (end_of(&file, size)?, BETWEEN),
        };
        let mut bytes = opening.to_vec();
        for (index, event) in events.iter().enumerate() {
            if index > 0 {
                bytes.extend_from_slice(BETWEEN);
            }
            serde_json::to_writer(&mut bytes, event)?;
        }
        bytes.extend_from_slice(END);
        file.write_all_at(&bytes, at).inspect_err(|_| {
            // The disk is full. What was there before ends as it did.
            drop(file.set_len(size));
            drop(file.write_all_at(&END[..(size - at) as usize], at));
        })
    }
}

/// Where the end of a trace of ours begins.
fn end_of(file: &File, size: u64) -> io::Result<u64> {
    let foreign = || io::Error::other("it has something else in it; name another file");
    let at = size.checked_sub(END.len() as u64).ok_or_else(foreign)?;
    let (mut first, mut last) = ([0; BEGIN.len()], [0; END.len()]);
    file.read_exact_at(&mut first, 0)?;
    file.read_exact_at(&mut last, at)?;
    match first == *BEGIN && last == *END {
        true => Ok(at),
        false => Err(foreign()),
    }
}

fn name_of(process: u32) -> Value {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_name());
    let name = name.map_or_else(|| "?".into(), |name| name.to_string_lossy());
    json!({ "ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": { "name": name } })
}

fn slice(event: &CacheEvent<'_>, process: u32) -> Value {
    let since = event.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let mut arguments = json!({ "outcome": event.word() });
    if let Some(key) = event.key {
        arguments["key"] = key.hex().into();
    }
    if let Err(error) = event.outcome {
        arguments["error"] = error.to_string().into();
    }
    json!({
        "ph": "X",
        "name": event.name,
        "cat": event.word(),
        "pid": process,
        "tid": thread,
        // Since 1970, so that the processes of a file fit together.
        "ts": since.as_micros() as u64,
        "dur": event.took.as_nanos() as f64 / 1000.0,
        "args": arguments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn event(name: &str, found: Found, took: Duration) -> CacheEvent<'_> {
        CacheEvent {
            name,
            key: None,
            outcome: Ok(found),
            started: SystemTime::now(),
            took,
        }
    }

    fn events(path: &std::path::Path) -> Vec<Value> {
        serde_json::from_slice(&std::fs::read(path).expect("a trace")).expect("a list")
    }

    #[test]
    fn the_file_is_whole_after_each_of_many_writers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    // Each is like a process of its own.
                    let tracer = Tracer::at(path.clone());
                    for _ in 0..20 {
                        let name = format!("k<{writer}, \"\n\\\">");
                        tracer
                            .add(&event(&name, Found::Disk, Duration::ZERO))
                            .expect("written");
                    }
                });
            }
        });
        let all = events(&path);
        let slices = all.iter().filter(|event| event["ph"] == "X").count();
        assert_eq!((slices, all.len()), (80, 84));
        assert!(all.iter().any(|event| event["name"] == "k<3, \"\n\\\">"));
    }

    #[test]
    fn short_hits_in_memory_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let tracer = Tracer::at(folder.path().join("a.json"));
        tracer
            .add(&event("short", Found::Memory, LONG / 2))
            .expect("left out");
        assert!(!tracer.path.exists());
        tracer
            .add(&event("long", Found::Memory, LONG))
            .expect("written");
        assert_eq!(events(&tracer.path).len(), 2);
    }

    #[test]
    fn another_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        for content in ["x", "[\n]", "{\"traceEvents\":[\n]\n"] {
            std::fs::write(&path, content).expect("written");
            let error = Tracer::at(path.clone()).add(&event("k", Found::Made, LONG));
            let error = error.expect_err("no trace of ours");
            assert!(error.contains("name another file"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).expect("text"), content);
        }
        let device = Tracer::at("/dev/null".into()).add(&event("k", Found::Made, LONG));
        assert!(device.expect_err("no file").contains("not a regular file"));
    }
}
