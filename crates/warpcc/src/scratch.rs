//! The scratch folder of a build: a private folder for the intermediate files. Each distinct command has one, and a process
//! locks it while it uses it.
//!
//! The folder's name is a hash of the command. It is not random, because debug information contains it: two builds of the
//! same command must give the same bytes. If two processes run the same command at the same time, the second one waits, and
//! then finds the first one's result. A process does not wait for another one that was stopped or has ended: see
//! docs/design/locks.md.

mod holder;
mod lock;
mod parent;
mod removal;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::log::Log;
use lock::LockResult;
pub use parent::{NameUse, NoScratch, sweep, unusable_root};
pub use removal::WATCH;
use removal::{FOLDERS, remove};

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

/// How many folder names are tried for a command. The next name is tried if the process that locked the folder was stopped
/// or has ended.
const MOST_NAMES: u32 = 4;

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
            let (root, unusable_parent) = parent::make(options.temporary, options.name_use)?;
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
        Some(parent::advice(usual, "another folder is used"))
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
        // The folder is removed before it is unlocked: the next process that locks it creates it again.
        let mut created = self.cleanup.lock();
        remove(&self.path, &self.lock_path);
        // Closing the file would not unlock it while a tool that is just being started has a copy of the descriptor.
        _ = flock(&self.lock, FlockOperation::Unlock);
        *created = CreatedPaths::default();
    }
}

#[cfg(test)]
mod tests;
