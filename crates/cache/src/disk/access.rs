//! Decides who may use a store's folder: only its owner, unless the user allows sharing.
//!
//! A store's content is trusted: anyone who can write to it decides the results of other people's builds. So a folder that
//! others can write to is not used; if it is this user's own, it is closed to them.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::error::OpenError;
use super::layout::{TEMPORARY, holds_entries};

/// Who may use a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// This user only, whatever the umask.
    Private,
    /// Every user whom the umask and the folder's permissions allow.
    ByUmask,
}

impl StoreAccess {
    /// The mode of a new file, before the umask.
    pub fn file_mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::ByUmask => 0o666,
        }
    }

    /// Creates a folder and what is missing above it.
    pub(crate) fn create_folder(self, path: &Path) -> io::Result<()> {
        let mode = match self {
            Self::Private => 0o700,
            Self::ByUmask => 0o777,
        };
        DirBuilder::new().recursive(true).mode(mode).create(path)
    }
}

/// The outcome of claiming a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// It was closed to others already.
    AsItWas,
    /// Others could write to it; now they cannot.
    Closed,
}

/// Makes sure that no other user can write below `root`, which is `found`.
///
/// # Errors
/// The folder is another user's, or cannot be closed to others.
pub(super) fn claim(root: &Path, found: &Metadata, readonly: bool) -> Result<Claimed, OpenError> {
    let foreign = |why| OpenError::Foreign {
        path: root.to_path_buf(),
        why,
    };
    let others_write = found.mode() & 0o022 != 0;
    let ours = found.uid() == rustix::process::geteuid().as_raw();
    if !ours {
        // Root could do anything anyway. This is for a cache in a system's image.
        return match found.uid() == 0 && !others_write {
            true => Ok(Claimed::AsItWas),
            false => Err(foreign("belongs to another user")),
        };
    }
    if found.mode() & 0o077 == 0 {
        return Ok(Claimed::AsItWas);
    }
    // A folder that holds anything else is never closed: /tmp, a home directory.
    let closed = !readonly
        && is_a_store(root)
        && fs::set_permissions(root, Permissions::from_mode(0o700)).is_ok();
    match (closed, others_write) {
        (true, true) => Ok(Claimed::Closed),
        (false, true) => Err(foreign("can be written by other users")),
        (_, false) => Ok(Claimed::AsItWas),
    }
}

/// Creates the folder of a private store if it is missing. If that fails, the first write reports it.
pub(super) fn create_root(root: &Path) {
    if let Some(parent) = root.parent() {
        drop(fs::create_dir_all(parent));
    }
    drop(DirBuilder::new().mode(0o700).create(root));
}

/// The name of a file in a store that says that its results are never uploaded.
const NEVER_UPLOAD: &str = "never-upload";

/// Whether the store in `root` is marked as never to be uploaded.
pub fn is_never_uploaded(root: &Path) -> bool {
    // If that cannot be seen, nothing is uploaded either.
    !matches!(root.join(NEVER_UPLOAD).try_exists(), Ok(false))
}

/// The name of a file in a store that says that results of an untrusted shared cache are in it.
const UNTRUSTED: &str = "untrusted";

/// Whether the store in `root` contains, or contained, results of an untrusted shared cache. No other shared cache gets
/// them.
pub fn is_untrusted(root: &Path) -> bool {
    !matches!(root.join(UNTRUSTED).try_exists(), Ok(false))
}

/// Marks the store in `root` before the first result of an untrusted shared cache is stored in it.
///
/// # Errors
/// The folder cannot be written.
pub fn mark_untrusted(root: &Path) -> std::io::Result<()> {
    let mark = root.join(UNTRUSTED);
    match mark.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => fs::write(mark, ""),
    }
}

/// Whether everything in a folder belongs to a store, or the folder is empty.
fn is_a_store(root: &Path) -> bool {
    let Ok(mut listing) = fs::read_dir(root) else {
        return false;
    };
    listing.all(|found| {
        let Ok(found) = found else { return false };
        let name = found.file_name();
        let text = name.to_string_lossy();
        let versioned = [
            "builds-v",
            "watch-v",
            "uploads-v",
            "remote-v",
            "stats-v",
            "size-v",
        ];
        holds_entries(&name)
            || versioned.iter().any(|kind| text.starts_with(kind))
            || text.starts_with(".warpcc-")
            // The last two are those of kernels that programs compile.
            || ["gc.lock", NEVER_UPLOAD, UNTRUSTED, TEMPORARY, "rtc", "failed"].contains(&&*text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_mode(path: &Path, mode: u32) -> Metadata {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
        fs::metadata(path).expect("look")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("look").mode() & 0o777
    }

    #[test]
    fn a_store_of_ours_is_closed_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        let open = with_mode(root, 0o777);
        assert_eq!(claim(root, &open, true).ok(), None, "read-only");
        assert_eq!(claim(root, &open, false).ok(), Some(Claimed::Closed));
        assert_eq!(mode(root), 0o700);
        fs::create_dir(root.join("blobs-v1")).expect("create");
        let readable = with_mode(root, 0o755);
        assert_eq!(claim(root, &readable, false).ok(), Some(Claimed::AsItWas));
        assert_eq!(mode(root), 0o700);
        fs::write(root.join("letter"), "").expect("write");
        let readable = with_mode(root, 0o755);
        assert_eq!(claim(root, &readable, false).ok(), Some(Claimed::AsItWas));
        assert_eq!(mode(root), 0o755, "somebody's folder was closed");
        let open = with_mode(root, 0o775);
        assert!(claim(root, &open, false).is_err());
        assert_eq!(mode(root), 0o775, "somebody's folder was closed");
    }
}
