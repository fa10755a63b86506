//! The line that `warpcc run --progress` keeps on the terminal: how far the run is, and which commands run.
//!
//! The line is rewritten in place, makes room for diagnostics, and is removed at the end.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use warpcc_report::monitor::harmless;

use crate::seconds::format_seconds;

/// How often the time is brought up to date.
const TICK: Duration = Duration::from_millis(200);
/// Moves to the start of the line, and clears it.
const CLEAR: &[u8] = b"\r\x1b[K";

/// How far a run is.
#[derive(Debug, Clone, Default)]
pub struct RunProgress {
    /// The number of commands that have ended, or are skipped.
    pub done: usize,
    /// The number of all commands of the run.
    pub total: usize,
    /// Names of the commands that run or wait for their turn.
    pub running: Vec<String>,
}

/// The progress line. Dropping it clears the line.
pub struct Progress {
    line: Arc<Mutex<Line>>,
    ticking: Option<(Sender<()>, JoinHandle<()>)>,
}

struct Line {
    started: Instant,
    progress: RunProgress,
    on_screen: bool,
}

impl Progress {
    /// Starts the line; `None` where standard error is no terminal. Nothing is shown before the first update.
    pub fn on_terminal() -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let line = Arc::new(Mutex::new(Line {
            started: Instant::now(),
            progress: RunProgress::default(),
            on_screen: false,
        }));
        let (sender, receiver) = mpsc::channel();
        let shared = Arc::clone(&line);
        let tick = move || {
            while receiver.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                lock(&shared).draw();
            }
        };
        let ticking = thread::Builder::new().spawn(tick).ok()?;
        Some(Self {
            line,
            ticking: Some((sender, ticking)),
        })
    }

    /// Sets the progress of the run. The screen follows at the next tick, however often this is called.
    pub fn update(&self, progress: RunProgress) {
        lock(&self.line).progress = progress;
    }

    /// Removes the line until the next update.
    pub fn hide(&self) {
        let mut line = lock(&self.line);
        line.progress = RunProgress::default();
        line.clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, ticking)) = self.ticking.take() {
            drop(sender);
            drop(ticking.join());
        }
        lock(&self.line).clear();
    }
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn draw(&mut self) {
        if self.progress.total == 0 {
            return;
        }
        let columns =
            rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col));
        let text = text(&self.progress, self.started.elapsed(), columns);
        // One write, because a line that is written in two parts flickers. Errors are ignored: the terminal may be closed.
        drop(io::stderr().write_all(&[CLEAR, text.as_bytes()].concat()));
        self.on_screen = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.on_screen) {
            drop(io::stderr().write_all(CLEAR));
        }
    }
}

/// The text of the line. It leaves the last column free, because some terminals wrap a full line.
pub(super) fn text(progress: &RunProgress, elapsed: Duration, columns: usize) -> String {
    let RunProgress {
        done,
        total,
        running,
    } = progress;
    let mut text = format!("warpcc: {done}/{total}  {}", format_seconds(elapsed));
    if !running.is_empty() {
        text.push_str("  ");
        text.push_str(&running.join(", "));
    }
    let room = columns.max(20) - 1;
    let text = harmless(&text);
    match text.char_indices().nth(room) {
        Some(_) => text.chars().take(room - 1).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_fits_its_line() {
        let progress = RunProgress {
            done: 12,
            total: 44,
            running: vec![
                "cicc compute_90".into(),
                "ptxas sm_80".into(),
                "host\n".into(),
            ],
        };
        let line = |columns| text(&progress, Duration::from_millis(8240), columns);
        assert_eq!(
            line(80),
            "warpcc: 12/44  8.24 s  cicc compute_90, ptxas sm_80, host\u{fffd}"
        );
        assert_eq!(line(40), "warpcc: 12/44  8.24 s  cicc compute_90…");
        assert_eq!(line(0).chars().count(), 19);
    }
}
