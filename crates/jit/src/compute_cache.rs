//! The folder of a driver's cache: its file system, its content, and the problems with them.
//!
//! [`Folder::examine`] asks the machine; [`remarks`] judges what it found, and can be tested without.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags};
use serde::Serialize;

use crate::file_system::FileSystem;
use crate::remark::Remark;

/// The deepest nesting of folders. The driver's cache has two levels. Only a loop of mounts is deeper.
const DEEPEST: usize = 8;

/// The folder of a cache, and the file system that it is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Folder {
    /// As the settings say it.
    pub path: PathBuf,
    /// Whether it is there.
    pub exists: bool,
    /// A file that is not a folder has the folder's path, or is on the way to it.
    pub blocked_by: Option<PathBuf>,
    /// The file system of the folder, or of the nearest existing folder above it.
    pub file_system: FileSystem,
    /// Mounted read-only.
    pub read_only: bool,
    /// This user may write there.
    pub writable: bool,
    /// Bytes that this user may still write.
    pub free: u64,
}

impl Folder {
    /// Looks at the folder, or where it would be made.
    ///
    /// # Errors
    /// The system does not say what the place is on.
    pub fn examine(path: &Path) -> io::Result<Self> {
        let mut at = path;
        let mut blocked_by = None;
        let there = loop {
            match at.metadata() {
                Ok(found) if found.is_dir() => break at,
                // A file, or a dangling link: a folder cannot be made below it.
                Ok(_) => blocked_by = Some(at.to_owned()),
                Err(_) if at.symlink_metadata().is_ok() => blocked_by = Some(at.to_owned()),
                Err(_) => {}
            }
            at = match at.parent() {
                Some(above) if !above.as_os_str().is_empty() => above,
                _ if path.is_absolute() => break Path::new("/"),
                _ => break Path::new("."),
            };
        };
        let kind = rustix::fs::statfs(there)?;
        let space = rustix::fs::statvfs(there)?;
        let number = kind.f_type as u64;
        Ok(Self {
            path: path.to_owned(),
            exists: there == path,
            blocked_by,
            file_system: FileSystem::from_number(number),
            read_only: space.f_flag.contains(StatVfsMountFlags::RDONLY),
            writable: rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            free: space.f_bavail.saturating_mul(space.f_frsize),
        })
    }
}

/// The contents of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Contents {
    /// Files, without the index.
    pub files: u64,
    /// Bytes of all files, the index among them.
    pub bytes: u64,
    /// Whether it has the driver's layout: an `index`, and folders named by one hexadecimal digit.
    pub is_cache: bool,
}

/// Whether a name is one of the sixteen that a driver gives to folders.
pub(crate) fn is_bucket(name: &str) -> bool {
    name.len() == 1 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Counts the folder's content. Links are not followed, and files that cannot be read are left out.
pub fn contents(path: &Path) -> Contents {
    let mut sum = Contents::default();
    let (mut index, mut buckets) = (false, false);
    let Ok(entries) = fs::read_dir(path) else {
        return sum;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if name == "index" && kind.is_file() {
            index = true;
            sum.bytes += entry.metadata().map_or(0, |meta| meta.len());
        } else if kind.is_dir() && name.to_str().is_some_and(is_bucket) {
            buckets = true;
            add(&entry.path(), 1, &mut sum);
        }
    }
    sum.is_cache = index && buckets;
    sum
}

fn add(path: &Path, depth: usize, sum: &mut Contents) {
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_file() {
            sum.files += 1;
            sum.bytes += entry.metadata().map_or(0, |meta| meta.len());
        } else if kind.is_dir() && depth < DEEPEST {
            add(&entry.path(), depth + 1, sum);
        }
    }
}

/// Remarks about keeping up to `limit` bytes in the folder, of which `held` are there already.
pub fn remarks(folder: &Folder, held: u64, limit: u64) -> Vec<Remark> {
    let mut found = Vec::new();
    let shown = folder.path.display();
    const ELSEWHERE: &str = "set CUDA_CACHE_PATH to a folder on a persistent local disk";
    const LOST: &str = "results cannot be stored: every start compiles everything again";
    if let Some(blocked) = &folder.blocked_by {
        found.push(Remark::fix(
            format!(
                "{} is not a folder, and the cache would be {shown}",
                blocked.display()
            ),
            LOST,
            format!("move it away, or {ELSEWHERE}"),
        ));
    } else if folder.read_only {
        found.push(Remark::fix(
            format!("{shown} is on a file system that is mounted read-only"),
            "existing results may be used; new ones cannot be stored",
            format!("mount it writable, or {ELSEWHERE}"),
        ));
    } else if !folder.writable {
        found.push(Remark::fix(
            format!("{shown} cannot be written by this user"),
            LOST,
            format!("correct its owner and mode, or {ELSEWHERE}"),
        ));
    }
    let kind = folder.file_system.name();
    match folder.file_system {
        FileSystem::Network(_) => found.push(Remark::fix(
            format!("{shown} is on {kind}"),
            "each start asks a server for each module, and machines that share a home share one \
             limit and one set of locks",
            ELSEWHERE,
        )),
        FileSystem::Fuse => found.push(Remark::fix(
            format!("{shown} is on {kind}"),
            "each access goes through another process, often over a network, and its locks may not work",
            ELSEWHERE,
        )),
        FileSystem::Layer => found.push(Remark::fix(
            format!("{shown} is in {kind}"),
            "compiled code is deleted with the container, and the next one compiles it again",
            "mount a volume and set CUDA_CACHE_PATH to it, or run `warpcc jit warm` when the image \
             is built",
        )),
        FileSystem::Memory => found.push(Remark::fix(
            format!("{shown} is in {kind}"),
            "it is gone when the machine or container ends, and takes memory until then",
            ELSEWHERE,
        )),
        FileSystem::ReadOnlyImage(_) if !folder.read_only => found.push(Remark::fix(
            format!("{shown} is on {kind}"),
            LOST,
            ELSEWHERE,
        )),
        FileSystem::ReadOnlyImage(_) | FileSystem::Local(_) => {}
    }
    let missing = limit.saturating_sub(held);
    if folder.free < missing && !folder.read_only {
        found.push(Remark::note(
            format!(
                "{} bytes are free where the cache is, and it may still grow by {missing}",
                folder.free
            ),
            "results that do not fit on the disk are not stored",
            "make room, or set CUDA_CACHE_MAXSIZE to less",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remark::Weight;

    fn folder(number: u64) -> Folder {
        Folder {
            path: "/c".into(),
            exists: true,
            blocked_by: None,
            file_system: FileSystem::from_number(number),
            read_only: false,
            writable: true,
            free: u64::MAX,
        }
    }

    fn said(folder: &Folder) -> String {
        let found = remarks(folder, 0, 1 << 30);
        let lines = found
            .iter()
            .map(|r| format!("{:?} {} / {}\n", r.weight, r.what, r.fix));
        lines.collect()
    }

    #[test]
    fn each_kind_of_storage_is_judged() {
        assert_eq!(said(&folder(0xef53)), "");
        for (number, word) in [
            (0x6969, "NFS"),
            (0x0bd0_0bd0, "Lustre"),
            (0x6573_5546, "FUSE"),
            (0x794c_7630, "mount a volume"),
            (0x0102_1994, "tmpfs"),
            (0x7371_7368, "SquashFS"),
        ] {
            let text = said(&folder(number));
            assert!(text.starts_with("Fix") && text.contains(word), "{text}");
        }
    }

    #[test]
    fn an_unwritable_folder_is_reported_once() {
        let read_only = Folder {
            read_only: true,
            writable: false,
            ..folder(0x7371_7368)
        };
        assert_eq!(remarks(&read_only, 0, 0).len(), 1);
        let not_mine = Folder {
            writable: false,
            ..folder(0xef53)
        };
        assert!(said(&not_mine).contains("owner and mode"));
        let full = Folder {
            free: 5,
            ..folder(0xef53)
        };
        let note = remarks(&full, 10, 20);
        assert_eq!(note[0].weight, Weight::Note);
        assert!(note[0].what.contains("grow by 10"));
        assert!(remarks(&full, 20, 20).is_empty());
    }

    #[test]
    fn a_folder_that_is_not_there_is_judged_by_the_one_above() -> io::Result<()> {
        let top = tempfile::tempdir()?;
        let path = top.path().join("a/b/c");
        let folder = Folder::examine(&path)?;
        assert!(!folder.exists && folder.writable && folder.blocked_by.is_none());
        fs::write(top.path().join("a"), "")?;
        let blocked = Folder::examine(&path)?;
        assert_eq!(blocked.blocked_by, Some(top.path().join("a")));
        std::os::unix::fs::symlink("/nowhere/at/all", top.path().join("l"))?;
        let dangling = Folder::examine(&top.path().join("l"))?;
        assert_eq!(dangling.blocked_by, Some(top.path().join("l")));
        assert!(Folder::examine(Path::new("/proc/self"))?.exists);
        Ok(())
    }

    #[test]
    fn contents_are_counted_without_following_links() -> io::Result<()> {
        let top = tempfile::tempdir()?;
        let at = top.path();
        assert!(!contents(at).is_cache && !contents(&at.join("none")).is_cache);
        fs::create_dir_all(at.join("a/3"))?;
        fs::write(at.join("a/3/0123abcd"), [0; 100])?;
        fs::write(at.join("index"), [0; 10])?;
        fs::write(at.join("notes.txt"), [0; 1000])?;
        std::os::unix::fs::symlink("/etc", at.join("b"))?;
        let found = contents(at);
        assert_eq!((found.files, found.bytes, found.is_cache), (1, 110, true));
        Ok(())
    }
}
