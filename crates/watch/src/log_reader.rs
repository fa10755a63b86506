//! Combines the records of all processes, and finds out whether any are missing.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::log::{self, Event, LogError, Record};
use crate::observed::Observed;
use crate::path_text::PathText;
use crate::programs::{Programs, Source};

/// Reads the log of a run that began with `program`, the path that was executed. Files read by programs for whose
/// executables `known` returns false are also listed in [`Observed::texts`].
///
/// # Errors
/// The bytes are not a log. A log with gaps is no error: see [`Observed::untracked`].
pub fn read_log(
    bytes: &[u8],
    program: &Path,
    known: &dyn Fn(&Path) -> bool,
) -> Result<Observed, LogError> {
    if bytes.is_empty() {
        return Err(LogError::Empty);
    }
    let mut rest = bytes;
    let mut reader = Reader::new(known);
    match log::next(&mut rest) {
        Some(Record {
            owner,
            event: event @ Event::Started { cwd, .. },
        }) => {
            reader.base = cwd.to_owned();
            reader
                .programs
                .announce(owner, cwd.join(program), Source::Itself);
            reader.add(owner, event);
        }
        _ => return Err(LogError::NotALog),
    }
    while !rest.is_empty() {
        let Some(Record { owner, event }) = log::next(&mut rest) else {
            reader.untracked(|| "the log is incomplete".to_owned());
            break;
        };
        reader.add(owner, event);
    }
    Ok(reader.end())
}

/// The events of one memory image: from exec or fork to exec or exit.
#[derive(Default)]
struct Image {
    program: PathBuf,
    cwd: PathBuf,
    records: u32,
    ended: bool,
    /// The program that it is about to become.
    becomes: Option<PathBuf>,
    /// Whether `known` holds for its program.
    known: bool,
}

struct Reader<'k> {
    known: &'k dyn Fn(&Path) -> bool,
    observed: Observed,
    base: PathBuf,
    images: BTreeMap<u32, Image>,
    programs: Programs,
}

impl<'k> Reader<'k> {
    fn new(known: &'k dyn Fn(&Path) -> bool) -> Self {
        Self {
            known,
            observed: Observed::default(),
            base: PathBuf::new(),
            images: BTreeMap::new(),
            programs: Programs::default(),
        }
    }

    fn untracked(&mut self, why: impl FnOnce() -> String) {
        // The first reason is the closest to the cause.
        self.observed.untracked.get_or_insert_with(why);
    }

    fn add(&mut self, owner: u32, event: Event<'_>) {
        match event {
            Event::Started {
                file,
                executable,
                cwd,
            } => {
                self.retire(owner, true);
                self.programs.started(owner, file, executable);
                self.observed.processes.push(executable.into());
                self.begin(owner, executable, cwd);
            }
            Event::Forked { cwd } => {
                // The child still runs the same program.
                self.retire(owner, false);
                self.begin(owner, Path::new(Observed::FORKED), cwd);
            }
            _ => self.continue_image(owner, event),
        }
    }

    fn begin(&mut self, owner: u32, program: &Path, cwd: &Path) {
        if cwd.as_os_str().is_empty() {
            self.untracked(|| format!("{} ran in a directory without a name", program.display()));
        }
        let image = Image {
            program: program.into(),
            cwd: cwd.into(),
            records: 1,
            known: (self.known)(program),
            ..Image::default()
        };
        self.images.insert(owner, image);
    }

    fn continue_image(&mut self, owner: u32, event: Event<'_>) {
        let Some(image) = self.images.get_mut(&owner) else {
            return self.untracked(|| format!("process {owner} logged before it started"));
        };
        image.records = image.records.saturating_add(1);
        // Texts compare faster than paths, and this runs for every record.
        let elsewhere = image.cwd.as_os_str() != self.base.as_os_str();
        let cwd = elsewhere.then(|| image.cwd.clone());
        let absolute = |path: &Path| match &cwd {
            Some(cwd) if path.is_relative() => PathText::from(cwd.join(path)),
            _ => PathText::from(path),
        };
        match event {
            Event::Moved { cwd } => {
                image.cwd = cwd.into();
                if cwd.as_os_str().is_empty() {
                    self.untracked(|| "a process moved to a directory without a name".to_owned());
                }
            }
            Event::File(access, identity, path) => {
                let path = absolute(path);
                self.file(owner, access, identity, path);
            }
            Event::Path(kind, path) => {
                let path = absolute(path);
                self.path(owner, kind, path);
            }
            Event::Held(path) => {
                let path = absolute(path);
                self.observed.held.get_or_insert(path);
            }
            Event::Leads(way, from, to) => self.led(way, absolute(from), to),
            Event::MayExecute(path) => {
                if !image.known {
                    self.observed.executable.insert(absolute(path));
                }
            }
            Event::Refused(errors, path) => {
                let path = absolute(path);
                self.may_use(errors, path);
            }
            Event::MayUse(errors, path) => {
                if !image.known {
                    let path = absolute(path);
                    self.may_use(errors, path);
                }
            }
            Event::UnknownIfStranger(text) => {
                let (known, program) = (image.known, image.program.clone());
                if !known {
                    self.untracked(|| unknown(&program, text));
                }
            }
            Event::Ends { count } => {
                image.ended = true;
                // The record of the end is not in the count, and others may have come in between.
                if image.records <= count {
                    let program = image.program.clone();
                    self.untracked(|| format!("records of {} were lost", program.display()));
                }
            }
            Event::Unknown(text) => {
                let program = image.program.clone();
                self.untracked(|| unknown(&program, text));
            }
            event => self.note_request(owner, event),
        }
    }

    /// Handles a request that names no file.
    fn note_request(&mut self, owner: u32, event: Event<'_>) {
        let Some(image) = self.images.get(&owner) else {
            return;
        };
        let program = || image.program.clone();
        let observed = &mut self.observed;
        match event {
            Event::Variable(name) => {
                let names = observed.variables.entry(program()).or_default();
                names.insert(name.to_owned());
            }
            Event::HasEnviron => _ = observed.have_environ.insert(program()),
            Event::LibraryHasEnviron(library) => {
                let libraries = &mut observed.libraries_have_environ;
                _ = libraries.insert((program(), library.into()));
            }
            Event::NamesFolder => observed.names_folder = true,
            Event::AskedDirectory => _ = observed.asked_directory.insert(program()),
            Event::AskedLimit(_) if image.known => {}
            Event::AskedLimit(Observed::PASSING) => _ = observed.asked_passing.insert(program()),
            Event::AskedLimit(number) => {
                observed.limits.entry(number).or_default().insert(program());
            }
            Event::AskedTime => observed.asked_time |= image.known,
            Event::ClosedUnread(path) => {
                let unread = &mut observed.closed_unread;
                unread.entry(program()).or_insert_with(|| path.into());
            }
            Event::ReadInput => _ = observed.read_input.get_or_insert_with(program),
            Event::FoundNoRoom => _ = observed.no_room.get_or_insert_with(program),
            event => self.start_another(owner, event),
        }
    }

    /// Handles a process that starts another program, or becomes one.
    fn start_another(&mut self, owner: u32, event: Event<'_>) {
        let Some(image) = self.images.get_mut(&owner) else {
            return;
        };
        let absolute = |program: &Path| self.base.join(&image.cwd).join(program);
        let says = |pid| match pid == owner {
            true => Source::Itself,
            false => Source::Parent,
        };
        match event {
            Event::Becomes { pid, program } => {
                self.programs.announce(pid, absolute(program), says(pid));
                if pid == owner {
                    image.becomes = Some(program.into());
                }
            }
            Event::Spawned { pid, program } => {
                self.programs
                    .announce(pid, absolute(program), Source::Parent);
            }
            Event::StartedByLibrary { program } => self.programs.by_library(program),
            Event::StaysItself { pid } => {
                if pid == owner {
                    image.becomes = None;
                    image.ended = false;
                }
                self.programs.take_back(pid, says(pid));
            }
            // The callers handled the others.
            _ => {}
        }
    }

    /// Closes the image of a process, if there is one. `replaced` means that a program started in its place.
    fn retire(&mut self, owner: u32, replaced: bool) {
        let Some(image) = self.images.remove(&owner) else {
            return;
        };
        if !image.ended {
            let unfinished = &mut self.observed.unfinished;
            unfinished.get_or_insert_with(|| image.program.clone());
            self.untracked(|| format!("{} did not finish its log", image.program.display()));
        } else if let Some(next) = image.becomes.filter(|_| !replaced) {
            self.untracked(|| format!("{} could not be watched", next.display()));
        }
    }

    fn end(mut self) -> Observed {
        let owners: Vec<u32> = self.images.keys().copied().collect();
        for owner in owners {
            self.retire(owner, false);
        }
        match std::mem::take(&mut self.programs).settle() {
            Ok(called) => {
                let called = called.into_iter();
                self.observed.called = called.map(|(path, to)| (path.into(), to)).collect();
            }
            Err(why) => self.untracked(|| why),
        }
        self.observed
    }
}

fn unknown(program: &Path, text: &[u8]) -> String {
    format!("{}: {}", program.display(), String::from_utf8_lossy(text))
}
