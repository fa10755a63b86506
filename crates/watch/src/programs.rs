//! Compares the programs that were announced with those that ran: a program that could not be watched is in one list only.
//!
//! Programs are compared by the file that was executed, not by number. If a static wrapper becomes a watched compiler, one
//! program is announced and one starts: the numbers agree, the files do not.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The kernel follows at most this many scripts whose interpreters are scripts.
const DEEPEST: usize = 5;
/// The kernel reads at most this many bytes of a script's first line.
const FIRST_LINE: usize = 256;

/// Which process logs what a process becomes: a `vfork` child uses its parent's memory, and `posix_spawn` is the parent's
/// call.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Itself,
    Parent,
}

/// A program that began to log.
struct Started {
    file: (u64, u64),
    executable: PathBuf,
}

/// The programs of one process, one after the other.
#[derive(Default)]
struct Life {
    /// What its parent started it with. The parent may log that after the child's own records.
    by_parent: Vec<PathBuf>,
    announced: Vec<PathBuf>,
    started: Vec<Started>,
}

/// All programs of a run.
#[derive(Default)]
pub(crate) struct Programs {
    lives: BTreeMap<u32, Life>,
    /// Children that the C library started itself; it does not reveal their process numbers.
    by_library: Vec<PathBuf>,
}

impl Programs {
    /// Notes that `pid` is about to become the program at `path`.
    pub(crate) fn announce(&mut self, pid: u32, path: PathBuf, says: Source) {
        self.announced(pid, says).push(path);
    }

    fn announced(&mut self, pid: u32, says: Source) -> &mut Vec<PathBuf> {
        let life = self.lives.entry(pid).or_default();
        match says {
            Source::Itself => &mut life.announced,
            Source::Parent => &mut life.by_parent,
        }
    }

    /// Notes that the C library starts the program at `path` in a process of its own.
    pub(crate) fn by_library(&mut self, path: &Path) {
        self.by_library.push(path.to_owned());
    }

    /// Removes the last announcement of `pid`, because the call failed.
    pub(crate) fn take_back(&mut self, pid: u32, says: Source) {
        self.announced(pid, says).pop();
    }

    /// Notes that a program began to log.
    pub(crate) fn started(&mut self, pid: u32, file: (u64, u64), executable: &Path) {
        let executable = executable.to_owned();
        let life = self.lives.entry(pid).or_default();
        life.started.push(Started { file, executable });
    }

    /// Compares both lists.
    ///
    /// # Errors
    /// An announced program did not log, or a program logged that was not announced.
    pub(crate) fn settle(mut self) -> Result<BTreeMap<PathBuf, PathBuf>, String> {
        let mut called = BTreeMap::new();
        for life in self.lives.values() {
            let mut announced: Vec<PathBuf> = Vec::new();
            // A child of the C library is the first program of its process.
            if let Some(first) = life.started.first()
                && life.started.len() > life.by_parent.len() + life.announced.len()
            {
                let place = self.by_library.iter().position(|path| runs_as(path, first));
                let place = place.ok_or_else(|| unannounced(first))?;
                announced.push(self.by_library.swap_remove(place));
            }
            announced.extend(life.by_parent.iter().chain(&life.announced).cloned());
            if let Some(more) = life.started.get(announced.len()) {
                return Err(unannounced(more));
            }
            for (at, path) in announced.into_iter().enumerate() {
                match life.started.get(at) {
                    Some(started) if runs_as(&path, started) => {
                        called.insert(path, started.executable.clone());
                    }
                    _ => return Err(format!("{} could not be watched", path.display())),
                }
            }
        }
        match self.by_library.first() {
            Some(path) => Err(format!("{} could not be watched", path.display())),
            None => Ok(called),
        }
    }
}

fn unannounced(started: &Started) -> String {
    let program = started.executable.display();
    format!("what started {program} could not be watched")
}

/// Whether executing `path` runs the file of `started`.
fn runs_as(path: &Path, started: &Started) -> bool {
    let mut path = path.to_owned();
    for _ in 0..DEEPEST {
        match interpreter(&path) {
            Some(next) => path = next,
            None => break,
        }
    }
    fs::metadata(&path).is_ok_and(|found| (found.dev(), found.ino()) == started.file)
}

/// The program that a script names in its first line.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    // Only executable files count: opening a pipe, or reading one of the kernel's files, may wait for ever.
    let can_run = |found: &fs::Metadata| found.is_file() && found.mode() & 0o111 != 0;
    fs::metadata(script).ok().filter(can_run)?;
    let file = fs::File::open(script).ok()?;
    file.take(FIRST_LINE as u64).read_to_end(&mut line).ok()?;
    let rest = line.strip_prefix(b"#!")?;
    let rest = rest.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let name = rest.split(|byte| b" \t".contains(byte)).next()?;
    (!name.is_empty()).then(|| Path::new(OsStr::from_bytes(name)).to_owned())
}
