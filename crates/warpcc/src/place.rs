//! Moves a finished output to the path that the user wants: the whole file appears at once, or nothing.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use warpcc_engine::modes;

use crate::outputs::{is_chosen, is_ours_alone, new_files_inherit, private_name};

/// Moves `from` to `to`, atomically. Replaces only a regular file of this user. While a copy exists next to `to`, its path is
/// in `unfinished`, so that a signal removes it.
///
/// # Errors
/// `to` cannot be written, or must not be replaced.
pub fn place(from: &Path, to: &Path, unfinished: &Mutex<Vec<PathBuf>>) -> io::Result<()> {
    let folder = to.parent().filter(|f| !f.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let inherits = new_files_inherit(folder);
    if !inherits {
        may_replace(to)?;
        if fs::rename(from, to).is_ok() {
            return Ok(());
        }
    }
    // The folder is on another file system, or new files inherit something from it: make a new file there.
    let temporary = private_name(folder);
    unfinished
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(temporary.clone());
    let copied = copy(from, &temporary, inherits)
        .and_then(|()| may_replace(to))
        .and_then(|()| fs::rename(&temporary, to));
    if copied.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    copied?;
    fs::remove_file(from)
}

/// Copies the contents into a new file, which gets the original's `x` bits and otherwise the mode of any new file. A mode that
/// the tool chose, perhaps by a umask of its own, is kept, unless new files inherit theirs from the folder. Where the original
/// is on a file system with one mode for all files, no tool chose it.
fn copy(from: &Path, to: &Path, inherits: bool) -> io::Result<()> {
    let mut source = File::open(from)?;
    let made = source.metadata()?.mode() & 0o777;
    let is_data = modes::is_new_data(from);
    let mode = if is_data { 0o666 } else { 0o666 | made & 0o111 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut copied = options.open(to)?;
    io::copy(&mut source, &mut copied)?;
    if !inherits && !is_data && is_chosen(made) {
        copied.set_permissions(Permissions::from_mode(made))?;
    }
    Ok(())
}

/// Checks once more, right before a rename: the file may have changed since it was decided on.
fn may_replace(to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        // Another call with the same output removed it between the look-up of its name and this answer.
        Ok(found) if found.nlink() == 0 => Ok(()),
        Ok(found) => is_ours_alone(&found).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a regular file of this user. Anything else of that name stays.
pub fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| is_ours_alone(&found).is_ok()) {
        // An error does not matter: the file may be gone already.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn replaces_a_plain_file() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, "new")?;
        fs::write(&to, "old")?;
        place(&from, &to, &Mutex::default())?;
        assert_eq!(fs::read(&to)?, b"new");
        assert!(!from.exists());
        Ok(())
    }

    #[test]
    fn a_copy_has_the_mode_that_the_tool_chose() -> io::Result<()> {
        crate::outputs::learn_umask();
        let dir = tempfile::tempdir()?;
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, "new")?;
        let usual = fs::metadata(&from)?.mode();
        for mode in [0o600, 0o755, usual & 0o777] {
            fs::set_permissions(&from, Permissions::from_mode(mode))?;
            copy(&from, &to, false)?;
            assert_eq!(fs::metadata(&to)?.mode() & 0o777, mode, "{mode:o}");
            fs::remove_file(&to)?;
        }
        Ok(())
    }

    #[test]
    fn special_files_are_not_replaced() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        fs::write(at("target"), "old")?;
        symlink("target", at("link"))?;
        symlink("nothing", at("dangling"))?;
        symlink("/dev/null", at("null"))?;
        fs::write(at("one"), "old")?;
        fs::hard_link(at("one"), at("other"))?;
        fs::create_dir(at("folder"))?;
        let named = ["link", "dangling", "null", "one", "other", "folder"];
        for name in named {
            fs::write(at("from"), "new")?;
            let before = fs::symlink_metadata(at(name))?.ino();
            assert!(
                place(&at("from"), &at(name), &Mutex::default()).is_err(),
                "{name}"
            );
            remove(&at(name));
            assert_eq!(fs::symlink_metadata(at(name))?.ino(), before, "{name}");
        }
        assert_eq!(fs::read(at("target"))?, b"old");
        assert_eq!(fs::read(at("one"))?, b"old");
        Ok(())
    }

    #[test]
    fn a_folder_hands_its_group_down() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let folder = dir.path().join("shared");
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o2755))?;
        // Only root can give a folder to any group; for others it is their own, and this still must work.
        let _ = std::os::unix::fs::chown(&folder, None, Some(54321));
        let group = fs::metadata(&folder)?.gid();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o2755))?;
        fs::write(dir.path().join("from"), "new")?;
        place(
            &dir.path().join("from"),
            &folder.join("to"),
            &Mutex::default(),
        )?;
        assert_eq!(fs::metadata(folder.join("to"))?.gid(), group);
        assert_eq!(fs::read_dir(&folder)?.count(), 1);
        Ok(())
    }
}
