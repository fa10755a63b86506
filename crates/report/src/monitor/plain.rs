//! The live view without a terminal: plain lines, for pipes and logs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use super::{MonitorSource, MonitorState, harmless, short_memory, short_time};

/// A line of figures, and one for each task that runs.
pub fn lines(now: &MonitorState) -> String {
    let mut text = format!("running {}", now.running.len());
    if now.slots > 0 {
        let _ = write!(text, "/{}", now.slots);
    }
    let _ = write!(text, "  waiting {}", now.waiting_count);
    if now.memory.budget_kib > 0 {
        let granted = short_memory(now.memory.granted_kib);
        let budget = short_memory(now.memory.budget_kib);
        let _ = write!(text, "  memory {granted}/{budget}");
    }
    let _ = write!(
        text,
        "  finished {}  hits {}  misses {}  failed {}",
        now.finished, now.hits, now.misses, now.failed
    );
    if let Some(left) = now.time_left() {
        let _ = write!(text, "  left {}", short_time(left));
    }
    text.push('\n');
    for task in &now.running {
        let architecture = task.architecture.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "  {:<10} {:<12} {:>8} {:>7}  {}",
            harmless(&task.tool),
            harmless(architecture),
            short_time(task.elapsed),
            short_memory(task.memory_kib),
            harmless(&task.label)
        );
    }
    text
}

/// Writes lines, waits, and writes again where something changed, until nothing runs or waits.
///
/// # Errors
/// Writing to `out` failed; a closed pipe is a normal end for the caller to tell apart.
pub fn follow(
    source: &mut dyn MonitorSource,
    every: Duration,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut last = String::new();
    loop {
        let now = source.snapshot();
        let text = lines(&now);
        if text != last {
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        if now.running.is_empty() && now.waiting_count == 0 {
            return Ok(());
        }
        last = text;
        std::thread::sleep(every);
    }
}
