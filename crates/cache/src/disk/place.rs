//! Put bytes where a compiler would put its output: a whole new file under the name, or into a device or pipe that has the name.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::blob::BlobFault;
use super::file::TempFile;

/// How the bytes get to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Under a private name beside it, then renamed.
    Replace,
    /// Into what is there.
    Into,
}

/// Bytes that wait, whole and verified, beside the name they are for. Dropped, they leave nothing.
pub struct Staged {
    temporary: TempFile,
    dest: PathBuf,
}

impl Staged {
    /// Gives them their name.
    ///
    /// # Errors
    /// The name cannot be given to a file.
    pub fn commit(self) -> Result<(), StoreError> {
        let Staged { temporary, dest } = self;
        bring_to(temporary, &dest).map_err(|source| StoreError::io("write", &dest, source))
    }
}

/// Runs `write`, which says whether there was anything to write, beside `dest`. `None` also where a file cannot take
/// the place of what is there; [`place`] then has other ways.
pub(super) fn stage(
    dest: &Path,
    executable: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<bool, BlobFault>,
) -> Result<Option<Staged>, BlobFault> {
    if way_to(dest) == Way::Into {
        return Ok(None);
    }
    let Ok(mut temporary) = beside(dest, executable) else {
        return Ok(None);
    };
    Ok(write(temporary.file())?.then(|| Staged {
        temporary,
        dest: dest.to_path_buf(),
    }))
}

/// Runs `write`, which says whether there was anything to write, and places what it wrote. Nothing is touched when it fails or has nothing.
pub(super) fn place(
    dest: &Path,
    executable: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<bool, BlobFault>,
) -> Result<bool, BlobFault> {
    if way_to(dest) == Way::Into {
        return write_into(dest, write);
    }
    let mut temporary = match beside(dest, executable) {
        Ok(temporary) => temporary,
        // A file that may be written in a folder that may not.
        Err(error) if is_refusal(&error) && dest.is_file() => return write_into(dest, write),
        Err(error) => return Err(BlobFault::Writing(error)),
    };
    if !write(temporary.file())? {
        return Ok(false);
    }
    bring_to(temporary, dest).map_err(BlobFault::Writing)?;
    Ok(true)
}

fn beside(dest: &Path, executable: bool) -> io::Result<TempFile> {
    let folder = match dest.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    TempFile::create_unnamed(folder, if executable { 0o777 } else { 0o666 })
}

fn bring_to(temporary: TempFile, dest: &Path) -> io::Result<()> {
    // ext4 writes a new file out before it replaces an old one: milliseconds of a hit. The assembler removes the old one first, too. What cannot be removed, the rename will name.
    drop(std::fs::remove_file(dest));
    temporary.move_to(dest)
}

fn way_to(dest: &Path) -> Way {
    // `/dev/stdout` may lead to a regular file, and the link must stay what it is.
    if dest.starts_with("/dev") || dest.starts_with("/proc") {
        return Way::Into;
    }
    // Links are followed here: one to a device stands for the device; one to a file, or to nothing, is replaced.
    match std::fs::metadata(dest) {
        Ok(found) if !found.is_file() && !found.is_dir() => Way::Into,
        _ => Way::Replace,
    }
}

fn write_into(
    dest: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<bool, BlobFault>,
) -> Result<bool, BlobFault> {
    // What is written there cannot be taken back, so the bytes are verified first.
    let mut bytes = Vec::new();
    if !write(&mut bytes)? {
        return Ok(false);
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(true);
    let mut file = options.open(dest).map_err(BlobFault::Writing)?;
    file.write_all(&bytes).map_err(BlobFault::Writing)?;
    Ok(true)
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}
