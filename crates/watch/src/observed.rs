//! Puts the records of all processes together, and finds out whether any are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::log::{self, Event, Kind, LogError, Record};

/// What the watched processes did, taken together.
///
/// Paths stand as the programs spelled them. A relative one is relative to the working directory of the
/// first process; those of processes that ran elsewhere are made absolute. A file that was missing
/// and then made is in both sets, as is a directory that a program opened like a file in `read`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// The executables of the programs started, in the order they began to log.
    pub processes: Vec<PathBuf>,
    /// Shared libraries they had mapped at their start or end.
    pub libraries: BTreeSet<PathBuf>,
    /// Files opened for reading, programs found among them.
    pub read: BTreeSet<PathBuf>,
    /// What was looked for and did not exist.
    pub missing: BTreeSet<PathBuf>,
    /// Files opened for writing, or put in place.
    pub written: BTreeSet<PathBuf>,
    /// Directories opened for listing.
    pub listed: BTreeSet<PathBuf>,
    /// What was looked at and existed, without being opened.
    pub found: BTreeSet<PathBuf>,
    /// Why this may not be all that happened.
    pub blind: Option<String>,
}

/// Reads what the library wrote.
///
/// # Errors
/// If the bytes are not a log. A log with gaps is no error: see [`Observed::blind`].
pub fn read_log(bytes: &[u8]) -> Result<Observed, LogError> {
    if bytes.is_empty() {
        return Err(LogError::Empty);
    }
    let mut rest = bytes;
    let mut reader = Reader::default();
    match log::next(&mut rest) {
        Some(Record {
            owner,
            event: Event::Started { executable, cwd },
        }) => {
            reader.base = cwd.to_owned();
            reader.add(owner, Event::Started { executable, cwd });
        }
        _ => return Err(LogError::NotALog),
    }
    while !rest.is_empty() {
        let Some(Record { owner, event }) = log::next(&mut rest) else {
            reader.blind(|| "the log is torn".to_owned());
            break;
        };
        reader.add(owner, event);
    }
    Ok(reader.end())
}

/// The life of one memory image: from exec or fork to exec or exit.
#[derive(Default)]
struct Image {
    program: PathBuf,
    cwd: PathBuf,
    records: u32,
    ended: bool,
    /// What it is about to become.
    becomes: Option<PathBuf>,
}

#[derive(Default)]
struct Reader {
    observed: Observed,
    base: PathBuf,
    images: BTreeMap<u32, Image>,
    /// Per pid the programs announced and not yet seen to start: a positive balance in the end is a
    /// program that could not be watched. Negative are those that started unannounced.
    announced: BTreeMap<u32, (i64, PathBuf)>,
}

impl Reader {
    fn blind(&mut self, why: impl FnOnce() -> String) {
        // The first reason is the one nearest the cause.
        self.observed.blind.get_or_insert_with(why);
    }

    fn add(&mut self, owner: u32, event: Event<'_>) {
        match event {
            Event::Started { executable, cwd } => {
                self.retire(owner, true);
                self.announced.entry(owner).or_default().0 -= 1;
                self.observed.processes.push(executable.to_owned());
                self.begin(owner, executable, cwd);
            }
            Event::Forked { cwd } => {
                self.retire(owner, false);
                self.begin(owner, Path::new("a forked process"), cwd);
            }
            _ => self.continue_image(owner, event),
        }
    }

    fn begin(&mut self, owner: u32, program: &Path, cwd: &Path) {
        if cwd.as_os_str().is_empty() {
            self.blind(|| format!("{} ran in a directory without a name", program.display()));
        }
        let image = Image {
            program: program.into(),
            cwd: cwd.into(),
            records: 1,
            ..Image::default()
        };
        self.images.insert(owner, image);
    }

    fn continue_image(&mut self, owner: u32, event: Event<'_>) {
        let Some(image) = self.images.get_mut(&owner) else {
            return self.blind(|| format!("process {owner} logged before it started"));
        };
        image.records = image.records.saturating_add(1);
        match event {
            Event::Moved { cwd } => {
                image.cwd = cwd.into();
                if cwd.as_os_str().is_empty() {
                    self.blind(|| "a process moved to a directory without a name".to_owned());
                }
            }
            Event::Path(kind, path) => {
                let path = if path.is_relative() && image.cwd != self.base {
                    image.cwd.join(path)
                } else {
                    path.into()
                };
                self.set(kind).insert(path);
            }
            Event::Becomes { pid, program } => {
                if pid == owner {
                    image.becomes = Some(program.into());
                }
                self.announce(pid, program);
            }
            Event::Spawned { pid, program } => self.announce(pid, program),
            Event::StaysItself { pid } => {
                if pid == owner {
                    image.becomes = None;
                    image.ended = false;
                }
                self.announced.entry(pid).or_default().0 -= 1;
            }
            Event::Ends { count } => {
                image.ended = true;
                // Its own record is not in the count, and others may have come in between.
                if image.records <= count {
                    let program = image.program.clone();
                    self.blind(|| format!("records of {} were lost", program.display()));
                }
            }
            Event::Unknown(text) => {
                let program = image.program.clone();
                self.blind(|| format!("{}: {}", program.display(), String::from_utf8_lossy(text)));
            }
            // Both begin an image and were dealt with by the caller.
            Event::Started { .. } | Event::Forked { .. } => {}
        }
    }

    fn announce(&mut self, pid: u32, program: &Path) {
        let entry = self.announced.entry(pid).or_default();
        entry.0 += 1;
        program.clone_into(&mut entry.1);
    }

    /// Closes the image of a process, if there is one. `replaced` if a program started in its place.
    fn retire(&mut self, owner: u32, replaced: bool) {
        let Some(image) = self.images.remove(&owner) else {
            return;
        };
        if !image.ended {
            self.blind(|| format!("{} did not end its log", image.program.display()));
        } else if let Some(next) = image.becomes.filter(|_| !replaced) {
            self.blind(|| format!("{} could not be watched", next.display()));
        }
    }

    fn set(&mut self, kind: Kind) -> &mut BTreeSet<PathBuf> {
        match kind {
            Kind::Library => &mut self.observed.libraries,
            Kind::Read => &mut self.observed.read,
            Kind::Written => &mut self.observed.written,
            Kind::Listed => &mut self.observed.listed,
            Kind::Found => &mut self.observed.found,
            Kind::Missing => &mut self.observed.missing,
        }
    }

    fn end(mut self) -> Observed {
        let owners: Vec<u32> = self.images.keys().copied().collect();
        for owner in owners {
            self.retire(owner, false);
        }
        for (_, (balance, program)) in std::mem::take(&mut self.announced) {
            if balance > 0 {
                self.blind(|| format!("{} could not be watched", program.display()));
            }
        }
        self.observed
    }
}
