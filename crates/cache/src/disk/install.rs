//! Put bytes where a compiler would put its output: a whole new file under the name, which is free or a plain file of ours.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{BlobFault, StoreError};
use super::file::TempFile;

/// Bytes that wait, whole and verified, next to the name they are for. Dropped, they leave nothing.
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

/// Runs `write`, which says whether there was anything to write, next to `dest`. `None` also where a file cannot take
/// the place of what is there; [`place`] then says why.
pub(super) fn stage(
    dest: &Path,
    executable: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<bool, BlobFault>,
) -> Result<Option<Staged>, BlobFault> {
    if may_take(dest).is_err() {
        return Ok(None);
    }
    let Ok(mut temporary) = create_in_folder_of(dest, executable) else {
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
    may_take(dest).map_err(BlobFault::Writing)?;
    let mut temporary = create_in_folder_of(dest, executable).map_err(BlobFault::Writing)?;
    if !write(temporary.file())? {
        return Ok(false);
    }
    bring_to(temporary, dest).map_err(BlobFault::Writing)?;
    Ok(true)
}

fn create_in_folder_of(dest: &Path, executable: bool) -> io::Result<TempFile> {
    let folder = match dest.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    TempFile::create_unnamed(folder, if executable { 0o777 } else { 0o666 })
}

fn bring_to(temporary: TempFile, dest: &Path) -> io::Result<()> {
    if may_take(dest)? {
        // ext4 writes a new file out before it replaces an old one: milliseconds of a hit. The assembler removes the
        // old one first, too. If that fails, the rename reports it.
        drop(fs::remove_file(dest));
    }
    temporary.move_to(dest)
}

/// Whether there is a file to be replaced. Only a regular one, ours, with no other name, ever is: a link, a device or
/// a pipe would be lost, and with it what others write there.
fn may_take(dest: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(dest) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw() {
        Ok(true)
    } else {
        Err(io::Error::other("it is not a plain file of this user's"))
    }
}
