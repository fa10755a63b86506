//! Copies folders for tests that change what they build.

use std::fs;
use std::io;
use std::path::Path;

/// Copies a folder and all below it, which may be there in part.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for item in fs::read_dir(from)? {
        let item = item?;
        let to = to.join(item.file_name());
        match item.file_type()?.is_dir() {
            true => copy_tree(&item.path(), &to)?,
            false => _ = fs::copy(item.path(), to)?,
        }
    }
    Ok(())
}
