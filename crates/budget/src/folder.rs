//! Finds the folder that all processes of a user share, and checks whether it can be trusted.
//!
//! It is in neither `XDG_RUNTIME_DIR` nor `TMPDIR`: builds may have different ones, and must still share the folder.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The place of the board.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BoardPlace {
    /// `/dev/shm/warpcc-UID`, or `/tmp/warpcc-UID-budget` where that cannot be used.
    #[default]
    OfUser,
    /// This folder, made if it is not there.
    At(PathBuf),
    /// Nowhere: the budget is this process's own.
    Nowhere,
}

/// A folder that was made or checked.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of `place`.
    ///
    /// # Errors
    /// None can be used: the last one tried, and why.
    pub fn find(place: &BoardPlace) -> Result<Self, (PathBuf, io::Error)> {
        let candidates = match place {
            BoardPlace::OfUser => {
                let user = rustix::process::geteuid().as_raw();
                vec![
                    PathBuf::from(format!("/dev/shm/warpcc-{user}")),
                    PathBuf::from(format!("/tmp/warpcc-{user}-budget")),
                ]
            }
            BoardPlace::At(path) => vec![path.clone()],
            BoardPlace::Nowhere => Vec::new(),
        };
        let mut failed = (PathBuf::new(), io::Error::other("not asked for"));
        for path in candidates {
            match prepare(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => failed = (path, error),
            }
        }
        Err(failed)
    }

    /// The seats, one record each.
    pub fn board(&self) -> PathBuf {
        self.0.join("board-v1")
    }

    /// The lock file: its holder may read and write the board.
    pub fn lock(&self) -> PathBuf {
        self.0.join("board.lock")
    }

    /// The file that the owner of a seat keeps locked.
    pub fn seat(&self, seat: usize) -> PathBuf {
        self.0.join("seats").join(seat.to_string())
    }

    /// The socket on which a seat's owner waits.
    pub fn socket(&self, seat: usize) -> PathBuf {
        self.sockets().join(seat.to_string())
    }

    /// The slots of a pool, a locked file each.
    pub fn pool(&self, name: &str) -> PathBuf {
        self.0.join("pools").join(name)
    }

    /// The folder of the sockets.
    pub fn sockets(&self) -> PathBuf {
        self.0.join("wake")
    }
}

fn prepare(path: &Path) -> io::Result<()> {
    make(path)?;
    let found = fs::symlink_metadata(path)?;
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !found.is_dir() {
        return refuse("not a folder");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refuse("it belongs to another user");
    }
    if found.mode() & 0o077 != 0 {
        return refuse("other users may access it");
    }
    make(&path.join("seats"))?;
    make(&path.join("wake"))
}

fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(0o700).recursive(true).create(path)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_folder_of_our_own_will_do() {
        let base = tempfile::tempdir().expect("a folder");
        let at = |name: &str| BoardPlace::At(base.path().join(name));
        assert!(Folder::find(&at("new/below")).is_ok());
        assert!(Folder::find(&at("new/below")).is_ok(), "again");
        fs::write(base.path().join("file"), "").expect("write");
        assert!(Folder::find(&at("file")).is_err());
        std::os::unix::fs::symlink(base.path().join("new"), base.path().join("link"))
            .expect("link");
        assert!(Folder::find(&at("link")).is_err());
        let open = base.path().join("open");
        fs::create_dir(&open).expect("create");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("chmod");
        assert!(Folder::find(&at("open")).is_err());
        assert!(Folder::find(&BoardPlace::Nowhere).is_err());
    }
}
