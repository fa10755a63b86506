//! The log of `WARPCC_LOG`: one line per decision, and nothing without that setting.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::config::LogTarget;

/// Where log lines go.
#[derive(Debug, Clone, Default)]
pub struct Log(Option<LogTarget>);

impl Log {
    /// A log to `target`.
    pub fn new(target: Option<LogTarget>) -> Self {
        Self(target)
    }

    /// Whether the setting names a place for log lines.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Opens the log's file, if it has one: a log that cannot be written is not noticed otherwise.
    ///
    /// # Errors
    /// The file cannot be opened. The message names it.
    pub fn try_to_open(&self) -> Result<(), String> {
        match &self.0 {
            Some(LogTarget::File(path)) => match open(path) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("{}: {error}", path.display())),
            },
            _ => Ok(()),
        }
    }

    /// Writes one line. `text` is called only if the log is on.
    pub fn line(&self, text: impl FnOnce() -> String) {
        let Some(target) = &self.0 else { return };
        // A path may have a line end in it.
        let text = text().replace('\n', "\\n");
        let line = format!("warpcc[{}]: {text}\n", std::process::id());
        match target {
            LogTarget::Stderr => _ = std::io::stderr().write_all(line.as_bytes()),
            LogTarget::File(path) => {
                // One write with O_APPEND: lines of many processes do not mix.
                _ = open(path).and_then(|mut file| file.write_all(line.as_bytes()));
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Warns the user of a problem that does not stop the build.
pub fn warn(text: &str) {
    _ = std::io::stderr().write_all(format!("warpcc: warning: {text}\n").as_bytes());
}

/// Tells the user what a command of ours did, besides its answer on standard output.
pub fn inform(text: &str) {
    _ = std::io::stderr().write_all(format!("warpcc: {text}\n").as_bytes());
}

/// Tells the user why a command of ours failed.
pub fn fail(text: &str) {
    _ = std::io::stderr().write_all(format!("warpcc: {text}\n").as_bytes());
}
