//! Where commands write their output: standard output, or a file.
//!
//! Each command's `print` turns plain data into text. Only [`print()`] writes to standard output.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// Give `write` standard output, buffered.
///
/// A reader that has seen enough (`warpcc stats | head -1`) is not an error.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

/// Writes a report to a file, naming the file when that fails.
///
/// # Errors
/// The file cannot be written.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut out = BufWriter::new(file);
    write(&mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Puts a file with `bytes` and `permissions` at `path`, whole or not at all. A link stays, and its target is replaced. A
/// pipe or a device is written to.
///
/// # Errors
/// The file cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8], permissions: Permissions) -> anyhow::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let replaced = match target.metadata() {
        Ok(found) if !found.is_file() => OpenOptions::new()
            .write(true)
            .open(&target)
            .and_then(|mut there| there.write_all(bytes)),
        _ => write_and_rename(&target, bytes, permissions),
    };
    replaced.with_context(|| format!("cannot write {}", path.display()))
}

fn write_and_rename(target: &Path, bytes: &[u8], permissions: Permissions) -> io::Result<()> {
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let written = write_unnamed(folder, bytes, &permissions);
    let linked = written.and_then(|file| {
        let link = |path: &Path| link_to(&file, path);
        tempfile::Builder::new().make_in(folder, link)
    });
    if let Ok(temporary) = linked {
        temporary.persist(target)?;
        return Ok(());
    }
    // The file system has no files without a name, or there is no room.
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().set_permissions(permissions)?;
    temporary.persist(target)?;
    Ok(())
}

/// Writes a file without a name: nothing is left if this process is killed meanwhile.
fn write_unnamed(folder: &Path, bytes: &[u8], permissions: &Permissions) -> io::Result<File> {
    let how = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(folder, how, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    file.set_permissions(permissions.clone())?;
    Ok(file)
}

/// Gives a file without a name the name `path`.
fn link_to(file: &File, path: &Path) -> io::Result<()> {
    let number = file.as_raw_fd();
    let unnamed = format!("/proc/self/fd/{number}");
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

/// The text that `write` writes.
#[cfg(test)]
pub fn text_of(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let listing = std::fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> = listing
            .map(|found| found.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_no_name_until_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let permissions = Permissions::from_mode(0o640);
        // A process that is killed here leaves nothing.
        let file = write_unnamed(folder.path(), b"new", &permissions).unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let target = folder.path().join("target");
        link_to(&file, &target).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert!(link_to(&file, &target).is_err(), "a file was overwritten");
        for text in ["a longer text", "short"] {
            replace_file(&target, text.as_bytes(), permissions.clone()).unwrap();
            assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
            let mode = target.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640);
            assert_eq!(names(folder.path()), ["target"]);
        }
    }
}
