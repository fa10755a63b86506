//! Finds out whether an output has the permissions of a new file. A hit cannot restore any others. On some file systems
//! (FAT, NTFS, shared folders of virtual machines) they are no choice of the tool that made the file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::search_path::is_executable;

/// The reason why a result is not stored.
pub const UNUSUAL: &str = "an output has permissions that a new file does not get";

/// Whether a file has the mode of a new file that a compiler makes in its folder, executable or not.
pub fn is_usual(path: &Path) -> bool {
    has_mode_of_new(path, if is_executable(path) { 0o777 } else { 0o666 })
}

/// Whether a tool made a file executable. On a file system with one mode for all files, each of them may be, and the mode
/// is nobody's choice.
pub fn is_program(path: &Path) -> bool {
    is_executable(path) && !is_new_data(path)
}

/// Whether a file has the mode of any new file in its folder that is not made executable.
pub fn is_new_data(path: &Path) -> bool {
    has_mode_of_new(path, 0o666)
}

/// Whether a new file in the folder of `path`, made with the mode `asked_for`, gets the mode that `path` has.
fn has_mode_of_new(path: &Path, asked_for: u32) -> bool {
    let mode = |found: fs::Metadata| found.permissions().mode();
    let found = path.metadata().map(mode);
    let folder = path.parent().unwrap_or(Path::new("."));
    // Umask, access control lists, and file systems with one mode for all files: only a new file shows the result.
    let new = fresh(folder, asked_for).and_then(|file| file.metadata().map(mode));
    matches!((found, new), (Ok(found), Ok(new)) if found == new)
}

/// Creates a file without a name. If the file system does not support that, creates one and removes its name.
fn fresh(folder: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)) {
        return Ok(File::from(file));
    }
    let name = format!(".warpcc-mode-{}", std::process::id());
    let path = folder.join(name);
    let mut options = fs::OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_that_somebody_chose_is_unusual() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "").expect("a file");
        assert!(is_usual(&path) && is_new_data(&path) && !is_program(&path));
        for mode in [0o600, 0o711] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
            assert!(!is_usual(&path), "{mode:o}");
            assert!(!is_new_data(&path), "{mode:o}");
        }
    }
}
