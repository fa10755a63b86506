//! Takes the contents of a folder and tells what a command added or changed in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotEntry {
    /// A file with its permission bits.
    File {
        /// The permission bits: an output with 0600, from a temporary file, would break `make install`.
        mode: u32,
        /// The number of names: a write to an output with two names changes both.
        links: u64,
        /// The owner: user and group.
        owner: (u32, u32),
        /// The contents.
        bytes: Vec<u8>,
    },
    /// A link and where it points.
    Link(PathBuf),
    /// A folder.
    Dir,
    /// A device, a pipe or a socket: type and permission bits, and the device number. The contents are not read.
    Special(u32, u64),
}

/// Metadata that show whether a file was written again, without reading the file.
type Signature = (u64, u64, i64, i64, i64, i64);

/// A folder's contents, by path relative to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The files, links and folders.
    pub entries: BTreeMap<String, SnapshotEntry>,
    #[serde(skip)]
    signatures: BTreeMap<String, Signature>,
}

impl Snapshot {
    /// Read a folder and all below it.
    pub fn take(root: &Path) -> Self {
        let mut snapshot = Self::default();
        snapshot.walk(root, root);
        snapshot
    }

    /// The entries that `before` lacks or has with another signature: the outputs of the commands in between.
    pub fn since(&self, before: &Self) -> Self {
        let is_new = |name: &String| {
            let lasts = matches!(
                self.entries.get(name),
                Some(SnapshotEntry::Dir | SnapshotEntry::Special(..))
            );
            match (self.signatures.get(name), before.signatures.get(name)) {
                // A folder's and a pipe's times change with use; only a new one counts.
                (_, Some(_)) if lasts => false,
                (now, then) => now != then,
            }
        };
        let mut new = self.clone();
        new.entries.retain(|name, _| is_new(name));
        new.signatures.retain(|name, _| is_new(name));
        new
    }

    /// Delete everything in this snapshot from the folder it was taken of.
    pub fn delete_from(&self, root: &Path) {
        // Backwards, so that a folder comes after what is in it.
        for (name, entry) in self.entries.iter().rev() {
            let path = root.join(name);
            match entry {
                SnapshotEntry::Dir => drop(fs::remove_dir(&path)),
                _ => super::remove_tree(&path),
            }
        }
    }

    fn walk(&mut self, root: &Path, dir: &Path) {
        let listing = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        for item in listing.flatten() {
            let path = item.path();
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            let name = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            let entry = if meta.is_dir() {
                self.walk(root, &path);
                SnapshotEntry::Dir
            } else if meta.is_symlink() {
                SnapshotEntry::Link(fs::read_link(&path).unwrap_or_default())
            } else if meta.is_file() {
                SnapshotEntry::File {
                    mode: meta.permissions().mode() & 0o7777,
                    links: meta.nlink(),
                    owner: (meta.uid(), meta.gid()),
                    bytes: fs::read(&path).unwrap_or_default(),
                }
            } else {
                // Reading it may block.
                SnapshotEntry::Special(meta.mode(), meta.rdev())
            };
            let signature = (
                meta.ino(),
                meta.size(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            );
            self.entries.insert(name.clone(), entry);
            self.signatures.insert(name, signature);
        }
    }
}
