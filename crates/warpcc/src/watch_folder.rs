//! The folder of the cache from which tools load the watch library. Only this user may write to it, because the library runs in
//! every compiler.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder in the cache at `root`. It is made if it does not exist. `None` if other users could replace what is in it.
pub fn in_cache(root: &Path) -> Option<PathBuf> {
    drop(fs::create_dir_all(root));
    if !is_safe(root) {
        return None;
    }
    let folder = root.join("watch-v1");
    drop(DirBuilder::new().mode(0o700).create(&folder));
    if !is_safe(&folder) {
        // Made under another umask by an earlier version.
        drop(fs::set_permissions(&folder, Permissions::from_mode(0o700)));
    }
    is_safe(&folder).then_some(folder)
}

/// Whether only this user, or root, can write in `folder`.
pub fn is_safe(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::metadata(folder).is_ok_and(|found| {
        found.is_dir() && [user, 0].contains(&found.uid()) && found.mode() & 0o022 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_can_write_is_closed_or_not_used() {
        let root = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
        };
        let folder = in_cache(root.path()).expect("a folder");
        mode(&folder, 0o777);
        assert_eq!(in_cache(root.path()), Some(folder.clone()));
        assert!(is_safe(&folder));
        mode(root.path(), 0o775);
        assert_eq!(in_cache(root.path()), None);
    }
}
