//! A circuit breaker for each server and direction: after an error, no process asks the server for a while. The state
//! is a small file in the cache's folder, which all processes read.
//!
//! ```text
//! remote-v1/<server>.<direction>    "<until, seconds since 1970> <failures> <reported 0|1> <why>\n"
//! ```
//!
//! The files are only hints: if one cannot be read or written, a server is asked once more.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::settings::{LONGEST_RETRY_AFTER, Layer};

/// Direction of transfers: a server with a full disk accepts nothing, and still answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Results from it.
    Reading,
    /// Results to it.
    Writing,
}

/// An open circuit breaker: why a server is not asked, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Seconds since 1970.
    pub until: u64,
    /// Faults in a row.
    pub failures: u32,
    /// Whether the user has been warned.
    pub reported: bool,
    /// The fault.
    pub why: String,
}

/// The circuit breakers of one cache folder.
#[derive(Debug, Clone)]
pub struct CircuitBreakers {
    folder: PathBuf,
}

impl CircuitBreakers {
    /// Those of the cache in `root`.
    pub fn in_cache(root: &Path) -> Self {
        Self {
            folder: root.join("remote-v1"),
        }
    }

    /// The pause of `layer`, if it is not to be asked now.
    pub fn pause(&self, layer: &Layer, direction: Direction) -> Option<Pause> {
        self.read(layer, direction)
            .filter(|known| known.until > now())
    }

    /// Notes an error. Returns true if the caller should warn of it: it `reports`, and no process has warned yet.
    pub fn trip(&self, layer: &Layer, direction: Direction, why: &str, reports: bool) -> bool {
        let before = self.read(layer, direction);
        if before.as_ref().is_some_and(|known| known.until > now()) {
            // Another process found it at the same time.
            return false;
        }
        let failures = before.as_ref().map_or(0, |known| known.failures);
        let factor = 1u32.checked_shl(failures).unwrap_or(u32::MAX);
        let length = layer
            .retry_after
            .saturating_mul(factor)
            .min(LONGEST_RETRY_AFTER.max(layer.retry_after));
        let first = before.is_none_or(|known| !known.reported);
        self.write(
            layer,
            direction,
            &Pause {
                until: now() + length.as_secs().max(1),
                failures: failures.saturating_add(1),
                reported: reports || !first,
                why: why.to_owned(),
            },
        );
        first && reports
    }

    /// Why uploads are paused, if the user has not been warned yet: an uploader has no terminal.
    pub fn unreported(&self, layer: &Layer) -> Option<String> {
        let known = self.pause(layer, Direction::Writing)?;
        if known.reported {
            return None;
        }
        let why = known.why.clone();
        self.write(
            layer,
            Direction::Writing,
            &Pause {
                reported: true,
                ..known
            },
        );
        Some(why)
    }

    /// The server works: it may be asked again.
    pub fn reset(&self, layer: &Layer, direction: Direction) {
        // As a rule there is no file.
        drop(fs::remove_file(self.path(layer, direction)));
    }

    fn path(&self, layer: &Layer, direction: Direction) -> PathBuf {
        let direction = match direction {
            Direction::Reading => "reading",
            Direction::Writing => "writing",
        };
        self.folder.join(format!("{}.{direction}", layer.id()))
    }

    fn read(&self, layer: &Layer, direction: Direction) -> Option<Pause> {
        let text = fs::read_to_string(self.path(layer, direction)).ok()?;
        let mut words = text.trim_end().splitn(4, ' ');
        let known = Pause {
            until: words.next()?.parse().ok()?,
            failures: words.next()?.parse().ok()?,
            reported: words.next()? == "1",
            why: words.next()?.to_owned(),
        };
        // If the clock was set back, a server must not be paused for years.
        let sane = now() + 2 * LONGEST_RETRY_AFTER.max(layer.retry_after).as_secs() + 2;
        (known.until <= sane).then_some(known)
    }

    fn write(&self, layer: &Layer, direction: Direction, known: &Pause) {
        let why = known.why.replace(['\n', '\r'], " ");
        let reported = u8::from(known.reported);
        let line = format!("{} {} {reported} {why}\n", known.until, known.failures);
        let path = self.path(layer, direction);
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::File::create(&temporary))
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            drop(fs::remove_file(&temporary));
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_warns_and_all_pause() {
        let folder = tempfile::tempdir().expect("folder");
        let breakers = CircuitBreakers::in_cache(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        assert_eq!(breakers.pause(&layer, Direction::Reading), None);
        assert!(breakers.trip(&layer, Direction::Reading, "no\nroute", true));
        assert!(!breakers.trip(&layer, Direction::Reading, "no route", true));
        let known = breakers.pause(&layer, Direction::Reading).expect("pause");
        assert_eq!((known.why.as_str(), known.failures), ("no route", 1));
        assert_eq!(breakers.pause(&layer, Direction::Writing), None);
        breakers.reset(&layer, Direction::Reading);
        assert_eq!(breakers.pause(&layer, Direction::Reading), None);
    }

    #[test]
    fn a_fault_of_an_uploader_is_reported_once() {
        let folder = tempfile::tempdir().expect("folder");
        let breakers = CircuitBreakers::in_cache(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        assert!(!breakers.trip(&layer, Direction::Writing, "full", false));
        assert_eq!(breakers.unreported(&layer).as_deref(), Some("full"));
        assert_eq!(breakers.unreported(&layer), None);
    }

    #[test]
    fn a_time_far_ahead_is_ignored() {
        let folder = tempfile::tempdir().expect("folder");
        let breakers = CircuitBreakers::in_cache(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        breakers.trip(&layer, Direction::Reading, "x", true);
        fs::write(
            breakers.path(&layer, Direction::Reading),
            "99999999999 1 1 x\n",
        )
        .expect("write");
        assert_eq!(breakers.pause(&layer, Direction::Reading), None);
        fs::write(breakers.path(&layer, Direction::Reading), "\u{fffd}").expect("write");
        assert_eq!(breakers.pause(&layer, Direction::Reading), None);
    }
}
