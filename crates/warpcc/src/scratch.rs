//! The private folder of a build: one for each distinct command, locked while it is used.
//!
//! The folder's name is made from the command, not drawn at random, because it stands in debug
//! information: two builds of the same command give the same bytes. Two processes with the same
//! command at the same time wait for each other; the second one then finds the first one's result.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

/// A locked, empty folder, removed with its lock when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    held: Arc<Held>,
    _lock: File,
}

/// What there is of this process's scratch folder, for who must remove it at any moment.
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

    /// Removes what there is. While the guard lives, nothing new is made.
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

/// The parent of all scratch folders of this user, made if need be.
///
/// # Errors
/// Somebody else owns a folder of that name.
fn root(temporary: &Path) -> io::Result<PathBuf> {
    let path = place(temporary);
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let found = fs::symlink_metadata(&path)?;
    if !is_private(&found) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} is not a folder that only this user can write",
                path.display()
            ),
        ));
    }
    Ok(path)
}

/// Whether only this user can write there.
fn is_private(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0
}

/// Where [`root`] is or would be.
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
    /// Locks and empties the folder `name`, waiting for another process that has it. `held` is
    /// told what was made, before anybody who locks it can miss it.
    ///
    /// # Errors
    /// The folder cannot be made or locked.
    pub fn open(temporary: &Path, name: &str, held: &Arc<Held>) -> io::Result<(Self, bool)> {
        let mut waited = false;
        // The holder removes the lock file when it ends, so what we locked may be a file that
        // nobody else sees any more; then it starts again.
        for _ in 0..1000 {
            let mut made = held.lock();
            let root = root(temporary)?;
            made.root = Some(root.clone());
            let lock_path = root.join(format!("{name}.lock"));
            let lock = match OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&lock_path)
            {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                waited = true;
                // Nothing here is ours yet: a signal need not wait.
                drop(made);
                flock(&lock, FlockOperation::LockExclusive)?;
                made = held.lock();
            }
            // Children keep the lock too: while one that outlived a killed warpcc may still write
            // here, nobody else may begin.
            rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
            let (ours, named) = (lock.metadata()?, fs::metadata(&lock_path));
            if !named.is_ok_and(|n| n.ino() == ours.ino() && n.dev() == ours.dev()) {
                continue;
            }
            let scratch = Self {
                path: root.join(name),
                lock_path,
                held: Arc::clone(held),
                _lock: lock,
            };
            made.own = Some((scratch.path.clone(), scratch.lock_path.clone()));
            let filled = scratch.fill();
            drop(made);
            filled?;
            return Ok((scratch, waited));
        }
        Err(io::Error::other(
            "the scratch folder's lock keeps vanishing",
        ))
    }

    fn fill(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        ["", "k", "k/real", "k/host", "out", "tmp"]
            .into_iter()
            .try_for_each(|folder| fs::create_dir(self.path.join(folder)))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What nvcc is told to keep its intermediate files in, with a slash at the end.
    pub fn keep_folder(&self) -> String {
        format!("{}/k/", self.path.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever gets the lock next has a folder of the same name.
        let mut made = self.held.lock();
        remove(&self.path, &self.lock_path);
        *made = Made::default();
    }
}

fn remove(path: &Path, lock_path: &Path) {
    // Left-overs cost disk, not correctness: the next user of the name empties the folder, and
    // `sweep` removes what nobody asks for again.
    let _ = fs::remove_dir_all(path);
    let _ = fs::remove_file(lock_path);
    if let Some(root) = path.parent() {
        let _ = fs::remove_dir(root); // Only when it is empty.
    }
}

/// Removes folders that a killed process left behind more than an hour ago.
pub fn sweep(temporary: &Path) {
    let root = place(temporary);
    if !fs::symlink_metadata(&root).is_ok_and(|found| is_private(&found)) {
        return;
    }
    let old = |entry: &fs::DirEntry| {
        entry.metadata().and_then(|m| m.modified()).is_ok_and(|m| {
            SystemTime::now()
                .duration_since(m)
                .is_ok_and(|age| age > Duration::from_secs(3600))
        })
    };
    for entry in fs::read_dir(&root)
        .into_iter()
        .flatten()
        .flatten()
        .filter(old)
    {
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
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_the_same_folder_and_leaves_nothing() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = {
            let (scratch, waited) = Scratch::open(dir.path(), "abc", &Arc::default())?;
            assert!(!waited);
            fs::write(scratch.path().join("k/file"), "x")?;
            scratch.path().to_owned()
        };
        assert!(!path.exists());
        assert_eq!(fs::read_dir(dir.path())?.count(), 0);
        let (again, _) = Scratch::open(dir.path(), "abc", &Arc::default())?;
        assert_eq!(again.path(), path);
        assert!(path.join("k").is_dir() && !path.join("k/file").exists());
        Ok(())
    }

    #[test]
    fn the_second_waits_for_the_first() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (first, _) = Scratch::open(dir.path(), "abc", &Arc::default())?;
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                Scratch::open(dir.path(), "abc", &Arc::default()).map(|(_, waited)| waited)
            });
            std::thread::sleep(Duration::from_millis(50));
            drop(first);
            assert!(second.join().expect("joins")?);
            Ok(())
        })
    }

    #[test]
    fn special_characters_are_not_used() -> io::Result<()> {
        assert!(root(Path::new("/tmp/with space"))?.starts_with("/tmp"));
        assert!(
            !root(Path::new("/tmp/with space"))?
                .to_string_lossy()
                .contains(' ')
        );
        Ok(())
    }
}
