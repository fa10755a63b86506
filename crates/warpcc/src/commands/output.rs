//! Where commands write their output: standard output, or a file.
//!
//! Each command's `print` turns plain data into text. Only [`print()`] writes to standard output.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;

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
        _ => write_beside(&target, bytes, permissions),
    };
    replaced.with_context(|| format!("cannot write {}", path.display()))
}

fn write_beside(target: &Path, bytes: &[u8], permissions: Permissions) -> io::Result<()> {
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty());
    let mut beside = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    beside.write_all(bytes)?;
    beside.as_file().set_permissions(permissions)?;
    beside.persist(target)?;
    Ok(())
}

/// The text that `write` writes.
#[cfg(test)]
pub fn text_of(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}
