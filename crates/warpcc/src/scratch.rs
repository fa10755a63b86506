//! The scratch folder of a build: a private folder for the intermediate files. Each distinct command has one, and a process
//! locks it while it uses it.
//!
//! The folder's name is a hash of the command. It is not random, because debug information contains it: two builds of the
//! same command must give the same bytes. If two processes run the same command at the same time, the second one waits, and
//! then finds the first one's result. A process does not wait for another one that was stopped or has ended: see
//! docs/design/locks.md.

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
use lock::LockResult;

/// A locked, empty folder, removed with its lock when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    cleanup: Arc<ScratchCleanup>,
    lock: File,
    /// The usual parent folder, if it could not be used.
    unusable_parent: Option<PathBuf>,
}

/// Where the scratch folder is made, and its name.
#[derive(Debug, Clone, Copy)]
pub struct ScratchOptions<'a> {
    /// The folder for temporary files.
    pub temporary: &'a Path,
    /// The folder's name, which is made from the command.
    pub name: &'a str,
    /// Whether the folder must have exactly this name.
    pub name_use: NameUse,
}

/// Whether the result contains the scratch folder's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse {
    /// Debug information contains the name, so another name gives another result.
    InResult,
    /// The result does not contain the name.
    NotInResult,
}

impl NameUse {
    /// The use of the name in a call with debug information or without.
    pub fn with_debug(debug: bool) -> Self {
        if debug {
            Self::InResult
        } else {
            Self::NotInResult
        }
    }
}

/// Why there is no scratch folder.
#[derive(Debug, thiserror::Error)]
pub enum NoScratch {
    /// Another user can write to the folder of that name.
    #[error("{} is not a folder that only this user can write to", .0.display())]
    Foreign(PathBuf),
    /// Another process has locked the folder, and will not unlock it soon.
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

    /// Advice for the user; `None` where the problem goes away by itself.
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

/// How many folder names are tried for a command. The next name is tried if the process that locked the folder was stopped
/// or has ended.
const MOST_NAMES: u32 = 4;

/// The scratch folder and the folders in it, outer ones first.
const FOLDERS: [&str; 6] = ["", "k", "k/real", "k/host", "out", "tmp"];
/// The folder in the scratch folder for the watch library, where the library cannot be in the cache.
pub const WATCH: &str = "watch";

/// How long a killed tool may take to end.
const TOOL_END: Duration = Duration::from_secs(1);

/// The paths that a signal has to remove, at any moment while the scratch folder is made, used or removed.
#[derive(Debug, Default)]
pub struct ScratchCleanup(Mutex<CreatedPaths>);

/// What exists of this process's scratch folder.
#[derive(Debug, Default)]
pub struct CreatedPaths {
    /// The parent of the scratch folder.
    root: Option<PathBuf>,
    /// The scratch folder and its lock file, once this process has locked it.
    folder_and_lock: Option<(PathBuf, PathBuf)>,
}

impl ScratchCleanup {
    fn lock(&self) -> MutexGuard<'_, CreatedPaths> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the scratch folder, if there is one. As long as the caller keeps the returned guard, no other is made.
    pub fn remove_for_good(&self) -> MutexGuard<'_, CreatedPaths> {
        let created = self.lock();
        if let Some((path, lock_path)) = &created.folder_and_lock {
            remove(path, lock_path);
        } else if let Some(root) = &created.root {
            let _ = fs::remove_dir(root); // Only when it is empty.
        }
        created
    }
}

/// Makes the parent of all scratch folders of this user, if there is none. If the usual parent cannot be used, makes another
/// one, and also gives the path of the usual one.
fn root(temporary: &Path, name_use: NameUse) -> Result<(PathBuf, Option<PathBuf>), NoScratch> {
    let path = usual_root(temporary);
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e.into()),
        _ => {}
    }
    if is_private(&fs::symlink_metadata(&path)?) {
        return Ok((path, None));
    }
    if name_use == NameUse::InResult {
        return Err(NoScratch::Foreign(path));
    }
    // Make a parent for this call alone, under a name that nobody can have guessed.
    for number in 0..100 {
        let own = PathBuf::from(format!("{}.{}", path.display(), unique_name(number)));
        match fs::DirBuilder::new().mode(0o700).create(&own) {
            Ok(()) => return Ok((own, Some(path))),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(NoScratch::Foreign(path))
}

fn unique_name(number: u32) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.as_nanos());
    format!("{:x}-{nanos:x}-{number:x}", std::process::id())
}

/// The usual parent of scratch folders, if others can write to it and it cannot be used. `None` if it can be used or does not
/// exist.
pub fn unusable_root(temporary: &Path) -> Option<PathBuf> {
    let path = usual_root(temporary);
    let found = fs::symlink_metadata(&path).ok()?;
    (!is_private(&found)).then_some(path)
}

/// Whether it is a folder to which only this user can write.
fn is_private(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0
}

/// The path of the usual parent. The folder may not exist.
fn usual_root(temporary: &Path) -> PathBuf {
    let has_plain_characters = |p: &Path| {
        p.to_str().is_some_and(|s| {
            s.chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-@+=".contains(c))
        })
    };
    // No special characters: nvcc passes the path to a shell, and warpcc looks for it in stubs.
    let base = if temporary.is_absolute() && has_plain_characters(temporary) {
        temporary
    } else {
        Path::new("/tmp")
    };
    let user = rustix::process::geteuid().as_raw();
    // The budget's file in /dev/shm has the name `warpcc-UID`, so this is another name.
    base.join(format!("warpcc-{user}-builds"))
}

impl Scratch {
    /// Locks and empties the scratch folder. Waits for another process that uses it. `cleanup` is locked while the folder is
    /// made, so that a signal at this moment does not leave it behind. The second value is true if this process waited.
    ///
    /// # Errors
    /// No folder can be made or locked.
    pub fn open(
        options: &ScratchOptions<'_>,
        cleanup: &Arc<ScratchCleanup>,
        log: &Log,
    ) -> Result<(Self, bool), NoScratch> {
        let names = match options.name_use {
            NameUse::InResult => 1,
            NameUse::NotInResult => MOST_NAMES,
        };
        let mut last_reason = String::new();
        for number in 1..=names {
            let name = match number {
                1 => options.name.to_owned(),
                _ => format!("{}-{number}", options.name),
            };
            match Self::open_named(options, &name, cleanup, log)? {
                Ok(opened) => return Ok(opened),
                Err(why) => {
                    log.line(|| format!("another private folder: {why}"));
                    last_reason = why;
                }
            }
        }
        Err(NoScratch::InUse(last_reason))
    }

    /// Opens the folder `name`. The inner error says why another name has to be tried.
    fn open_named(
        options: &ScratchOptions<'_>,
        name: &str,
        cleanup: &Arc<ScratchCleanup>,
        log: &Log,
    ) -> Result<Result<(Self, bool), String>, NoScratch> {
        // The last process that leaves the parent removes it, perhaps just before this process makes its lock file there.
        let mut vanished = false;
        for _ in 0..1000 {
            let mut created = cleanup.lock();
            let (root, unusable_parent) = root(options.temporary, options.name_use)?;
            created.root = Some(root.clone());
            // Waiting for the lock may take long. A signal must not wait that long for `cleanup`.
            drop(created);
            let (path, lock_path) = (root.join(name), root.join(format!("{name}.lock")));
            let (lock, waited) = match lock::take(&lock_path, &path, log) {
                Ok(LockResult::Locked { lock, waited }) => (lock, waited),
                Ok(LockResult::GivenUp(why)) => return Ok(Err(why)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    vanished = true;
                    continue;
                }
                Err(e) => {
                    // For example, there is no free file descriptor.
                    _ = fs::remove_dir(&root); // Only when it is empty.
                    return Err(e.into());
                }
            };
            created = cleanup.lock();
            let scratch = Self {
                path,
                lock_path,
                cleanup: Arc::clone(cleanup),
                lock,
                unusable_parent,
            };
            created.folder_and_lock = Some((scratch.path.clone(), scratch.lock_path.clone()));
            let filled = scratch.fill();
            drop(created);
            filled?;
            // If the parent vanished, another process used a folder in it until then, perhaps this one.
            return Ok(Ok((scratch, waited || vanished)));
        }
        Err(io::Error::other("something keeps deleting the private folder").into())
    }

    /// Advice for a user whose usual parent folder cannot be used; `None` where it is used.
    pub fn advice(&self) -> Option<String> {
        let usual = self.unusable_parent.as_deref()?;
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
        // The folder is removed before it is unlocked: the next process that locks it makes it anew.
        let mut created = self.cleanup.lock();
        remove(&self.path, &self.lock_path);
        // Closing the file would not unlock it while a tool that is just being started has a copy of the descriptor.
        _ = flock(&self.lock, FlockOperation::Unlock);
        *created = CreatedPaths::default();
    }
}

fn remove(path: &Path, lock_path: &Path) {
    // Files that cannot be removed do no harm: the next process that uses the name empties the folder, and `sweep` removes
    // folders that are not used again.
    remove_while_others_write(path);
    let _ = fs::remove_file(lock_path);
    if let Some(root) = path.parent() {
        let _ = fs::remove_dir(root); // Only when it is empty.
    }
}

/// Removes the folder, again and again: a tool that was just killed, or a thread of this process, may still write a file into
/// a folder that was empty a moment ago.
fn remove_while_others_write(path: &Path) {
    let began = Instant::now();
    while let Err(error) = fs::remove_dir_all(path) {
        if error.kind() != io::ErrorKind::DirectoryNotEmpty || began.elapsed() > TOOL_END {
            // Without free file descriptors folders cannot be listed. Then no files were written either, and the empty
            // folders are removed by name.
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
    let usual = usual_root(temporary);
    if fs::symlink_metadata(&usual).is_ok_and(|found| is_private(&found)) {
        return sweep_root(&usual);
    }
    // The usual parent cannot be used. Earlier calls have made other parents next to it.
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
