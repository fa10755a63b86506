//! Replaces a file as a whole: no reader sees half of it, and a process that is killed leaves nothing.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// Writes a file under another name first, so that no reader sees half of it.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = write_unnamed(path, bytes)
        .and_then(|file| link_to(&file, &temporary))
        // Not every file system has files without a name.
        .or_else(|_| File::create_new(&temporary).and_then(|mut file| file.write_all(bytes)))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        drop(std::fs::remove_file(&temporary));
    }
    written
}

/// Writes a file without a name, in the folder of `path`: nothing is left if this process is killed meanwhile.
pub(super) fn write_unnamed(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let how = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = rustix::fs::open(folder.unwrap_or(Path::new(".")), how, mode)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    Ok(file)
}

fn link_to(file: &File, path: &Path) -> io::Result<()> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}
