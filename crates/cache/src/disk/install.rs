//! Puts bytes where a compiler would put its output: as a new file, if the name is free or belongs to a plain file of this
//! user.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{BlobFault, StoreError};
use super::file::TempFile;

/// Complete and verified bytes next to the name that they will get. If this is dropped, they are removed.
pub struct Staged {
    temporary: TempFile,
    dest: PathBuf,
}

impl Staged {
    /// Gives the file its name.
    ///
    /// # Errors
    /// The name cannot be given to a file.
    pub fn commit(self) -> Result<(), StoreError> {
        let Staged { temporary, dest } = self;
        bring_to(temporary, &dest).map_err(|source| StoreError::io("write", &dest, source))
    }
}

/// Runs `write` with a file next to `dest`; `write` returns whether there was anything to write. Returns `None` if there was
/// nothing, or if a file cannot replace what is at `dest`; [`place`] then reports why.
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

/// Runs `write`, which returns whether there was anything to write, and puts the file in place. If it fails or has nothing,
/// nothing is touched.
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
        // ext4 writes a new file to the disk before it replaces an old one, which takes milliseconds of a hit. So the old
        // one is removed first, as the assembler does. If that fails, the rename reports it.
        drop(fs::remove_file(dest));
    }
    temporary.move_to(dest)
}

/// Whether an existing file may be replaced. It may if it is a regular file of this user without another name. If a
/// link, a device or a pipe were replaced, it would be lost, and other programs could no longer write to it.
fn may_take(dest: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(dest) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Another call with the same output removed it between the look-up of its name and this answer.
    if found.nlink() == 0 {
        return Ok(false);
    }
    if found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw() {
        Ok(true)
    } else {
        Err(io::Error::other("it is not a plain file of this user's"))
    }
}
