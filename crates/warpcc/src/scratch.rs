//! The private folder of a build: one for each distinct command, locked while it is used.
//!
//! The folder's name is made from the command, not drawn at random, because it stands in debug
//! information: two builds of the same command give the same bytes. Two processes with the same
//! command at the same time wait for each other; the second one then finds the first one's result.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

/// A locked, empty folder, removed with its lock when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

/// The parent of all scratch folders of this user.
///
/// # Errors
/// Somebody else owns a folder of that name.
pub fn root(temporary: &Path) -> io::Result<PathBuf> {
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
    let path = base.join(format!("warpcc-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let found = fs::symlink_metadata(&path)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
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

impl Scratch {
    /// Locks and empties the folder `name`, waiting for another process that has it.
    ///
    /// # Errors
    /// The folder cannot be made or locked.
    pub fn open(temporary: &Path, name: &str) -> io::Result<(Self, bool)> {
        let mut waited = false;
        // The holder removes the lock file when it ends, so what we locked may be a file that
        // nobody else sees any more; then it starts again.
        for _ in 0..1000 {
            let root = root(temporary)?;
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
                flock(&lock, FlockOperation::LockExclusive)?;
            }
            // Children keep the lock too: while one that outlived a killed warpcc may still write
            // here, nobody else may begin.
            rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
            let (ours, named) = (lock.metadata()?, fs::metadata(&lock_path));
            if !named.is_ok_and(|n| n.ino() == ours.ino() && n.dev() == ours.dev()) {
                continue;
            }
            let path = root.join(name);
            match fs::remove_dir_all(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            for folder in [
                path.clone(),
                path.join("k"),
                path.join("k/real"),
                path.join("k/host"),
                path.join("out"),
                path.join("tmp"),
            ] {
                fs::create_dir(folder)?;
            }
            return Ok((
                Self {
                    path,
                    lock_path,
                    _lock: lock,
                },
                waited,
            ));
        }
        Err(io::Error::other(
            "the scratch folder's lock keeps vanishing",
        ))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What nvcc is told to keep its intermediate files in, with a slash at the end.
    pub fn keep_folder(&self) -> String {
        format!("{}/k/", self.path.display())
    }

    /// Removes everything now: for a process that is about to end without dropping.
    pub fn remove(&self) {
        remove(&self.path, &self.lock_path);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
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
    let Ok(root) = root(temporary) else { return };
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
            let (scratch, waited) = Scratch::open(dir.path(), "abc")?;
            assert!(!waited);
            fs::write(scratch.path().join("k/file"), "x")?;
            scratch.path().to_owned()
        };
        assert!(!path.exists());
        assert_eq!(fs::read_dir(dir.path())?.count(), 0);
        let (again, _) = Scratch::open(dir.path(), "abc")?;
        assert_eq!(again.path(), path);
        assert!(path.join("k").is_dir() && !path.join("k/file").exists());
        Ok(())
    }

    #[test]
    fn the_second_waits_for_the_first() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (first, _) = Scratch::open(dir.path(), "abc")?;
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Scratch::open(dir.path(), "abc").map(|(_, waited)| waited));
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
