//! Puts a finished output where the user wants it: at once or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Moves `from` to `to`, replacing what is there, atomically where `to` is an ordinary file. `unfinished` learns of a
/// file beside it, while there is one.
///
/// # Errors
/// `to` cannot be written.
pub fn place(from: &Path, to: &Path, unfinished: &Mutex<Vec<PathBuf>>) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        // A device or pipe is written into: `-o /dev/null`.
        Ok(found) if !found.is_file() && !found.is_symlink() => {
            OpenOptions::new()
                .write(true)
                .open(to)?
                .write_all(&fs::read(from)?)?;
            return fs::remove_file(from);
        }
        _ => {}
    }
    match fs::rename(from, to) {
        Ok(()) => Ok(()),
        // Another file system, or a folder that lets us write the file but not rename into it.
        Err(_) => {
            let beside = temporary_beside(to);
            let mut list = unfinished.lock().unwrap_or_else(PoisonError::into_inner);
            list.push(beside.clone());
            drop(list);
            let copied = fs::copy(from, &beside).and_then(|_| fs::rename(&beside, to));
            if copied.is_err() {
                let _ = fs::remove_file(&beside);
            }
            copied?;
            fs::remove_file(from)
        }
    }
}

fn temporary_beside(to: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(to.file_name().unwrap_or_default());
    name.push(format!(".warpcc-{}", std::process::id()));
    to.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_keeps_the_mode() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, "new")?;
        fs::write(&to, "old")?;
        let unfinished = Mutex::default();
        place(&from, &to, &unfinished)?;
        assert_eq!(fs::read(&to)?, b"new");
        assert!(!from.exists());
        fs::write(&from, "gone")?;
        place(&from, Path::new("/dev/null"), &unfinished)?;
        assert!(!from.exists());
        Ok(())
    }
}
