//! Decides whether the working directory can be found by its name. warpcc makes absolute paths of relative ones, and
//! nvcc's tools do not.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, stat, statx};
use rustix::io::Errno;

/// Somebody removed the working directory.
pub const DIRECTORY_GONE: &str = "the working directory is gone";

/// A mount hides the working directory, it was moved since this process began, or this user cannot enter a folder above it.
pub const DIRECTORY_HIDDEN: &str = "the working directory is not found by its name";

/// Why absolute paths would name other files than relative ones in this process. `directory` is the working directory's
/// name, which is empty where it has none.
pub fn unusable_directory(directory: &Path) -> Option<&'static str> {
    if directory.as_os_str().is_empty() {
        return Some(DIRECTORY_GONE);
    }
    let same = identity(Path::new("."))
        .and_then(|here| Ok(here == identity(directory)?))
        .unwrap_or(false);
    (!same).then_some(DIRECTORY_HIDDEN)
}

/// The device, the inode and the mount: in another mount of one folder, other mounts may hide what is below.
fn identity(path: &Path) -> Result<(u64, u64, u64), Errno> {
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    match statx(CWD, path, AtFlags::empty(), wanted) {
        Ok(found) => {
            let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
            let has_mount =
                StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
            let mount = if has_mount { found.stx_mnt_id } else { 0 };
            Ok((device, found.stx_ino, mount))
        }
        Err(Errno::NOSYS) => {
            let found = stat(path)?;
            Ok((found.st_dev, found.st_ino, 0))
        }
        Err(error) => Err(error),
    }
}
