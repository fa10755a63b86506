//! The private folder of a build: one for each distinct command, locked while it is used.
//!
//! The folder's name is made from the command, not drawn at random, because it stands in debug
//! information: two builds of the same command give the same bytes. Two processes with the same
//! command at the same time wait for each other; the second one then finds the first one's result.
//! No process waits for one that does not work: see docs/design/locks.md.

mod holder;
mod lock;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::log::Log;
use lock::Taken;

/// A locked, empty folder, removed with its lock when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    held: Arc<Held>,
    lock: File,
    /// The usual parent that could not be used.
    instead_of: Option<PathBuf>,
}

/// Which folder is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The folder for temporary files.
    pub temporary: &'a Path,
    /// The folder's name, which is made from the command.
    pub name: &'a str,
    /// Whether it must have that name.
    pub naming: Naming,
}

/// Whether the folder's name stands in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The name stands in debug information: another name is another result.
    Counts,
    /// The name stands nowhere.
    Free,
}

impl Naming {
    /// The naming for a call with debug information or without.
    pub fn with_debug(debug: bool) -> Self {
        if debug { Self::Counts } else { Self::Free }
    }
}

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
pub enum NoScratch {
    /// Another user has made a folder of that name.
    #[error("{} is not a folder that only this user can write to", .0.display())]
    Foreign(PathBuf),
    /// Another process has the folder, and waiting is no use.
    #[error("{0}")]
    InUse(String),
    /// The folder cannot be made or locked.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NoScratch {
    /// The reason that is counted.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InUse(_) => "the private folder is in use",
            Self::Foreign(_) | Self::Io(_) => "no private folder",
        }
    }

    /// Advice for the user, who would not find out otherwise why builds are slow; `None` where the problem passes by itself.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Foreign(path) => Some(advice(path, "nvcc runs alone")),
            Self::InUse(_) | Self::Io(_) => None,
        }
    }
}

fn advice(path: &Path, meanwhile: &str) -> String {
    format!(
        "{} is not a folder that only this user can write to; {meanwhile} (set TMPDIR to a folder of your own)",
        path.display()
    )
}

/// How many names are tried for a command: each but the first where a process that does not work has the one before.
const SPARE_NAMES: u32 = 4;

/// The folder and those in it, outer ones first.
const FOLDERS: [&str; 6] = ["", "k", "k/real", "k/host", "out", "tmp"];
/// One more, where the watch library cannot be in the cache.
pub const WATCH: &str = "watch";

/// How long a killed tool may take to end.
const DYING: Duration = Duration::from_secs(1);

/// This process's scratch folder as far as it exists, so that a signal can remove it at any moment.
#[derive(Debug, Default)]
pub struct Held(Mutex<Made>);

#[derive(Debug, Default)]
pub struct Made {
    root: Option<PathBuf>,
    /// The folder and its lock, once we have it.
    own: Option<(PathBuf, PathBuf)>,
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the folder, if there is one. While the guard lives, no folder is made.
    pub fn remove_for_good(&self) -> MutexGuard<'_, Made> {
        let made = self.lock();
        if let Some((path, lock_path)) = &made.own {
            remove(path, lock_path);
        } else if let Some(root) = &made.root {
            let _ = fs::remove_dir(root); // Only when it is empty.
        }
        made
    }
}

/// The parent of all scratch folders of this user, made if need be; and the usual one, where it is another.
fn root(temporary: &Path, naming: Naming) -> Result<(PathBuf, Option<PathBuf>), NoScratch> {
    let path = place(temporary);
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e.into()),
        _ => {}
    }
    if is_private(&fs::symlink_metadata(&path)?) {
        return Ok((path, None));
    }
    if naming == Naming::Counts {
        return Err(NoScratch::Foreign(path));
    }
    // A parent for this call alone, under a name that no process can have taken before.
    for number in 0..100 {
        let own = PathBuf::from(format!("{}.{}", path.display(), unheard_of(number)));
        match fs::DirBuilder::new().mode(0o700).create(&own) {
            Ok(()) => return Ok((own, Some(path))),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(NoScratch::Foreign(path))
}

fn unheard_of(number: u32) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.as_nanos());
    format!("{:x}-{nanos:x}-{number:x}", std::process::id())
}

/// The usual parent of scratch folders where it cannot be used; `None` where it can be used or does not exist.
pub fn foreign_root(temporary: &Path) -> Option<PathBuf> {
    let path = place(temporary);
    let found = fs::symlink_metadata(&path).ok()?;
    (!is_private(&found)).then_some(path)
}

/// Whether only this user can write there.
fn is_private(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0
}

/// The path of [`root`], which may not exist.
fn place(temporary: &Path) -> PathBuf {
    let plain = |p: &Path| {
        p.to_str().is_some_and(|s| {
            s.chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-@+=".contains(c))
        })
    };
    // nvcc passes the folder through a shell and we look for it in stubs: no special characters.
    let base = if temporary.is_absolute() && plain(temporary) {
        temporary
    } else {
        Path::new("/tmp")
    };
    let user = rustix::process::geteuid().as_raw();
    // Not the budget's name, which is `warpcc-UID` in /dev/shm.
    base.join(format!("warpcc-{user}-builds"))
}

impl Scratch {
    /// Locks and empties a folder, waiting for another process that works in it. `held` is locked while the folder is made,
    /// so that a signal does not miss it. Also tells whether this process waited.
    ///
    /// # Errors
    /// No folder can be had.
    pub fn open(
        wanted: &Wanted<'_>,
        held: &Arc<Held>,
        log: &Log,
    ) -> Result<(Self, bool), NoScratch> {
        let names = match wanted.naming {
            Naming::Counts => 1,
            Naming::Free => SPARE_NAMES,
        };
        let mut passed_by = String::new();
        for number in 1..=names {
            let name = match number {
                1 => wanted.name.to_owned(),
                _ => format!("{}-{number}", wanted.name),
            };
            match Self::open_named(wanted, &name, held, log)? {
                Ok(opened) => return Ok(opened),
                Err(why) => {
                    log.line(|| format!("another private folder: {why}"));
                    passed_by = why;
                }
            }
        }
        Err(NoScratch::InUse(passed_by))
    }

    /// The folder `name`; the inner error is the reason why it cannot be used.
    fn open_named(
        wanted: &Wanted<'_>,
        name: &str,
        held: &Arc<Held>,
        log: &Log,
    ) -> Result<Result<(Self, bool), String>, NoScratch> {
        // The last process to leave removes the parent, perhaps between our looking for it and using it.
        let mut vanished = false;
        for _ in 0..1000 {
            let mut made = held.lock();
            let (root, instead_of) = root(wanted.temporary, wanted.naming)?;
            made.root = Some(root.clone());
            // Nothing here is ours yet: a signal need not wait.
            drop(made);
            let (path, lock_path) = (root.join(name), root.join(format!("{name}.lock")));
            let (lock, waited) = match lock::take(&lock_path, &path, log) {
                Ok(Taken::Ours { lock, waited }) => (lock, waited),
                Ok(Taken::PassedBy(why)) => return Ok(Err(why)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    vanished = true;
                    continue;
                }
                Err(e) => {
                    // Without a descriptor, or rights to what was just made. It goes only when it is empty.
                    _ = fs::remove_dir(&root);
                    return Err(e.into());
                }
            };
            made = held.lock();
            let scratch = Self {
                path,
                lock_path,
                held: Arc::clone(held),
                lock,
                instead_of,
            };
            made.own = Some((scratch.path.clone(), scratch.lock_path.clone()));
            let filled = scratch.fill();
            drop(made);
            filled?;
            // The process that removed the folder was at work until then.
            return Ok(Ok((scratch, waited || vanished)));
        }
        Err(io::Error::other("something keeps deleting the private folder").into())
    }

    /// Advice for a user whose usual folder belongs to another user; `None` where the usual folder is used.
    pub fn advice(&self) -> Option<String> {
        let usual = self.instead_of.as_deref()?;
        Some(advice(usual, "another folder is used"))
    }

    fn fill(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        FOLDERS
            .into_iter()
            .try_for_each(|folder| fs::create_dir(self.path.join(folder)))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder in which nvcc keeps its intermediate files, with a slash at the end.
    pub fn keep_folder(&self) -> String {
        format!("{}/k/", self.path.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next process with the lock has a folder of the same name.
        let mut made = self.held.lock();
        remove(&self.path, &self.lock_path);
        // Also where a tool that is just being started has a copy.
        _ = flock(&self.lock, FlockOperation::Unlock);
        *made = Made::default();
    }
}

fn remove(path: &Path, lock_path: &Path) {
    // Left-overs cost disk, not correctness: the next user of the name empties the folder, and
    // `sweep` removes folders that are not used again.
    remove_while_others_write(path);
    let _ = fs::remove_file(lock_path);
    if let Some(root) = path.parent() {
        let _ = fs::remove_dir(root); // Only when it is empty.
    }
}

/// A tool that was just killed, or a thread that does not know yet, may still put a file into a folder that was empty.
fn remove_while_others_write(path: &Path) {
    let began = Instant::now();
    while let Err(error) = fs::remove_dir_all(path) {
        if error.kind() != io::ErrorKind::DirectoryNotEmpty || began.elapsed() > DYING {
            // Listing takes descriptors. Where there are none left, nothing was written either.
            for folder in [WATCH].into_iter().chain(FOLDERS.into_iter().rev()) {
                _ = fs::remove_dir(path.join(folder));
            }
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Removes folders that a killed process left behind more than an hour ago.
pub fn sweep(temporary: &Path) {
    let usual = place(temporary);
    if fs::symlink_metadata(&usual).is_ok_and(|found| is_private(&found)) {
        return sweep_root(&usual);
    }
    // Calls that could not use the parent have had folders of their own next to it.
    let name = usual.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.");
    let beside = usual.parent().map(fs::read_dir);
    for entry in beside.into_iter().flatten().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(&prefix);
        if ours && is_old(&entry) && entry.metadata().is_ok_and(|found| is_private(&found)) {
            sweep_root(&entry.path());
        }
    }
}

fn is_old(entry: &fs::DirEntry) -> bool {
    entry.metadata().and_then(|m| m.modified()).is_ok_and(|m| {
        SystemTime::now()
            .duration_since(m)
            .is_ok_and(|age| age > Duration::from_secs(3600))
    })
}

fn sweep_root(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries.filter(is_old) {
        let lock_path = entry.path();
        if lock_path.extension().is_none_or(|e| e != "lock") {
            continue;
        }
        let Ok(lock) = File::open(&lock_path) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&lock_path.with_extension(""), &lock_path);
        }
    }
    let _ = fs::remove_dir(root);
}

#[cfg(test)]
mod tests;
