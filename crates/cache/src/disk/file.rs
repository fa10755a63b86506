//! Files that appear only when they are complete: they first have a private name or none, and a failure leaves nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::access::StoreAccess;

/// A file with a private name or without a name. It is removed unless it is moved into place.
pub(crate) struct TempFile {
    /// `None` if the file has no name. Such a file disappears with the process, however that ends.
    path: Option<PathBuf>,
    file: File,
    moved: bool,
}

impl TempFile {
    /// Creates a file without a name in the file system of `folder`, if that is possible (open(2), `O_TMPFILE`), otherwise
    /// like [`TempFile::create`]. It is for the user's folders, in which an interrupted process must leave nothing.
    pub(crate) fn create_unnamed(folder: &Path, mode: u32) -> io::Result<TempFile> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => Ok(TempFile {
                path: None,
                file: file.into(),
                moved: false,
            }),
            Err(_) => TempFile::create(folder, mode),
        }
    }

    /// Creates a file in `folder`; the process's umask applies to `mode`.
    pub(crate) fn create(folder: &Path, mode: u32) -> io::Result<TempFile> {
        loop {
            let path = private_name(folder);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode);
            match options.open(&path) {
                Ok(file) => {
                    return Ok(TempFile {
                        path: Some(path),
                        file,
                        moved: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Like [`TempFile::create`], but creates the folder if it is missing.
    pub(crate) fn create_with_folder(folder: &Path, access: StoreAccess) -> io::Result<TempFile> {
        with_folder(Some(folder), access, || {
            TempFile::create(folder, access.file_mode())
        })
    }

    /// Its path, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.path
            .as_deref()
            .unwrap_or(Path::new("a file without a name"))
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    pub(crate) fn move_to(mut self, path: &Path) -> io::Result<()> {
        self.try_move(path)
    }

    /// Like [`TempFile::move_to`], but creates the target's folder if it is missing.
    pub(crate) fn move_to_with_folder(
        mut self,
        path: &Path,
        access: StoreAccess,
    ) -> io::Result<()> {
        with_folder(path.parent(), access, || self.try_move(path))
    }

    fn try_move(&mut self, path: &Path) -> io::Result<()> {
        if self.path.is_none() {
            let folder = path.parent().unwrap_or(Path::new(""));
            let mut linked = self.link(path);
            if linked == Err(Errno::EXIST) {
                // Only a file with a name can replace another.
                let private = private_name(folder);
                linked = self.link(&private);
                if linked.is_ok() {
                    self.path = Some(private);
                }
            } else if linked.is_ok() {
                return Ok(());
            }
            if let Err(refused) = linked {
                // A sandbox may allow files without names and no links.
                *self = self.named_copy(folder).map_err(|_| refused)?;
            }
        }
        if let Some(own) = &self.path {
            std::fs::rename(own, path)?;
            self.moved = true;
        }
        Ok(())
    }

    /// A file with a private name that has the content and mode of this one.
    fn named_copy(&self, folder: &Path) -> io::Result<TempFile> {
        let mut content = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        let mut copy = TempFile::create(folder, 0o600)?;
        io::copy(&mut content, &mut copy.file)?;
        copy.file
            .set_permissions(self.file.metadata()?.permissions())?;
        Ok(copy)
    }

    /// Gives a name to a file without one, as open(2) describes under `O_TMPFILE`.
    fn link(&self, path: &Path) -> rustix::io::Result<()> {
        let ours = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, ours, CWD, path, AtFlags::SYMLINK_FOLLOW)
    }
}

fn private_name(folder: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Two containers that share a folder may have equal process ids, so the time is in the name too.
    let time = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(
        ".warpcc-{:x}-{number:x}-{time:x}",
        std::process::id()
    ))
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let (false, Some(path)) = (self.moved, &self.path) {
            // If this fails, a later collection removes the file.
            drop(std::fs::remove_file(path));
        }
    }
}

/// Runs `attempt`; if a folder is missing, creates it and runs it again. So folders are created once, and not looked for
/// each time.
pub(crate) fn with_folder<T>(
    folder: Option<&Path>,
    access: StoreAccess,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    // It tries several times, because another process may be clearing the store and remove the folder again.
    const ATTEMPTS: usize = 16;
    let mut result = attempt();
    for _ in 0..ATTEMPTS {
        match (&result, folder) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
                match access.create_folder(folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => result = attempt(),
                }
            }
            _ => break,
        }
    }
    result
}

/// Whether an error means that the path does not exist.
pub(crate) fn means_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A file's content and its handle; `None` if it does not exist.
pub(crate) fn read_whole(path: &Path) -> io::Result<Option<(File, Vec<u8>)>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if means_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some((file, bytes)))
}

/// How outdated the time of last use may be. To write it at every use would cost too much.
const USE_AGE: Duration = Duration::from_secs(3600);

/// Notes that an entry is used now, unless that was noted within the last hour. If this fails, the entry only looks as
/// if it had not been used.
pub(crate) fn mark_used(file: &File) {
    let now = SystemTime::now();
    let recent = file
        .metadata()
        .and_then(|found| found.modified())
        .is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age < USE_AGE));
    if !recent {
        drop(file.set_modified(now));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_linked_is_copied() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let mut file = TempFile::create_unnamed(folder.path(), 0o755)?;
        file.write_all(b"content")?;
        let mode = file.file().metadata()?.permissions().mode();
        let copy = file.named_copy(folder.path())?;
        drop(file);
        let path = folder.path().join("a.o");
        fs::write(&path, "old")?;
        copy.move_to(&path)?;
        assert_eq!(fs::read(&path)?, b"content");
        assert_eq!(fs::metadata(&path)?.permissions().mode(), mode);
        assert_eq!(fs::read_dir(folder.path())?.count(), 1);
        Ok(())
    }
}
