//! Which servers are left alone, and until when: one small file for each in the cache's folder, so that every process
//! knows what one has found out.
//!
//! ```text
//! remote-v1/<server>.<way>    "<until, seconds since 1970> <times> <told 0|1> <why>\n"
//! ```
//!
//! The files are advice: one that cannot be read or written means that a server is asked once more.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::settings::{LONGEST_REST, Layer};

/// What was asked of a server. A full disk takes nothing, but gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Results from it.
    Reading,
    /// Results to it.
    Writing,
}

/// Why and until when a server is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resting {
    /// Seconds since 1970.
    pub until: u64,
    /// How often in a row.
    pub times: u32,
    /// Whether a user has been told.
    pub told: bool,
    /// The fault.
    pub why: String,
}

/// The files of one cache.
#[derive(Debug, Clone)]
pub struct Health {
    folder: PathBuf,
}

impl Health {
    /// Of the cache in `root`.
    pub fn of(root: &Path) -> Self {
        Self {
            folder: root.join("remote-v1"),
        }
    }

    /// Why `layer` is to be left alone now, if it is.
    pub fn resting(&self, layer: &Layer, way: Way) -> Option<Resting> {
        self.read(layer, way).filter(|known| known.until > now())
    }

    /// Notes a fault. True for who is the first to find it, and should tell.
    pub fn rest(&self, layer: &Layer, way: Way, why: &str, tells: bool) -> bool {
        let before = self.read(layer, way);
        if before.as_ref().is_some_and(|known| known.until > now()) {
            // Others were at it at the same time.
            return false;
        }
        let times = before.as_ref().map_or(0, |known| known.times);
        let factor = 1u32.checked_shl(times).unwrap_or(u32::MAX);
        let rest = layer
            .rest
            .saturating_mul(factor)
            .min(LONGEST_REST.max(layer.rest));
        let first = before.is_none_or(|known| !known.told);
        self.write(
            layer,
            way,
            &Resting {
                until: now() + rest.as_secs().max(1),
                times: times.saturating_add(1),
                told: tells || !first,
                why: why.to_owned(),
            },
        );
        first && tells
    }

    /// What nobody has told the user yet: an uploader has no terminal.
    pub fn untold(&self, layer: &Layer) -> Option<String> {
        let known = self.resting(layer, Way::Writing)?;
        if known.told {
            return None;
        }
        let why = known.why.clone();
        self.write(
            layer,
            Way::Writing,
            &Resting {
                told: true,
                ..known
            },
        );
        Some(why)
    }

    /// The server did its part.
    pub fn well(&self, layer: &Layer, way: Way) {
        // Mostly there is none.
        drop(fs::remove_file(self.path(layer, way)));
    }

    fn path(&self, layer: &Layer, way: Way) -> PathBuf {
        let way = match way {
            Way::Reading => "reading",
            Way::Writing => "writing",
        };
        self.folder.join(format!("{}.{way}", layer.id()))
    }

    fn read(&self, layer: &Layer, way: Way) -> Option<Resting> {
        let text = fs::read_to_string(self.path(layer, way)).ok()?;
        let mut words = text.trim_end().splitn(4, ' ');
        let known = Resting {
            until: words.next()?.parse().ok()?,
            times: words.next()?.parse().ok()?,
            told: words.next()? == "1",
            why: words.next()?.to_owned(),
        };
        // A clock that was set back must not keep a server out for years.
        let sane = now() + 2 * LONGEST_REST.max(layer.rest).as_secs() + 2;
        (known.until <= sane).then_some(known)
    }

    fn write(&self, layer: &Layer, way: Way, known: &Resting) {
        let why = known.why.replace(['\n', '\r'], " ");
        let told = u8::from(known.told);
        let line = format!("{} {} {told} {why}\n", known.until, known.times);
        let path = self.path(layer, way);
        let beside = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::File::create(&beside))
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            drop(fs::remove_file(&beside));
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
    fn one_tells_and_all_leave_it_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let health = Health::of(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        assert_eq!(health.resting(&layer, Way::Reading), None);
        assert!(health.rest(&layer, Way::Reading, "no\nroute", true));
        assert!(!health.rest(&layer, Way::Reading, "no route", true));
        let known = health.resting(&layer, Way::Reading).expect("resting");
        assert_eq!((known.why.as_str(), known.times), ("no route", 1));
        assert_eq!(health.resting(&layer, Way::Writing), None);
        health.well(&layer, Way::Reading);
        assert_eq!(health.resting(&layer, Way::Reading), None);
    }

    #[test]
    fn what_an_uploader_found_is_told_once_by_another() {
        let folder = tempfile::tempdir().expect("folder");
        let health = Health::of(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        assert!(!health.rest(&layer, Way::Writing, "full", false));
        assert_eq!(health.untold(&layer).as_deref(), Some("full"));
        assert_eq!(health.untold(&layer), None);
    }

    #[test]
    fn a_time_far_ahead_is_no_time() {
        let folder = tempfile::tempdir().expect("folder");
        let health = Health::of(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        health.rest(&layer, Way::Reading, "x", true);
        fs::write(health.path(&layer, Way::Reading), "99999999999 1 1 x\n").expect("write");
        assert_eq!(health.resting(&layer, Way::Reading), None);
        fs::write(health.path(&layer, Way::Reading), "\u{fffd}").expect("write");
        assert_eq!(health.resting(&layer, Way::Reading), None);
    }
}
