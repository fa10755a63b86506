//! The parent of all scratch folders of a user: makes it, and removes what killed processes left in it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::removal::remove;

/// Whether the result contains the scratch folder's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse {
    /// Debug information contains the name, so another name gives another result.
    InResult,
    /// The result does not contain the name.
    NotInResult,
}

impl NameUse {
    /// The use of the name in a call with debug information or without.
    pub fn with_debug(debug: bool) -> Self {
        if debug {
            Self::InResult
        } else {
            Self::NotInResult
        }
    }
}

/// Why there is no scratch folder.
#[derive(Debug, thiserror::Error)]
pub enum NoScratch {
    /// Another user can write to the folder of that name.
    #[error("{} is not a folder that only this user can write to", .0.display())]
    Foreign(PathBuf),
    /// Another process has locked the folder, and will not unlock it soon.
    #[error("{0}")]
    InUse(String),
    /// The folder cannot be made or locked.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NoScratch {
    /// The reason that is counted.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InUse(_) => "the private folder is in use",
            Self::Foreign(_) | Self::Io(_) => "no private folder",
        }
    }

    /// Advice for the user; `None` where the problem goes away by itself.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Foreign(path) => Some(advice(path, "nvcc runs alone")),
            Self::InUse(_) | Self::Io(_) => None,
        }
    }
}

pub(super) fn advice(path: &Path, meanwhile: &str) -> String {
    format!(
        "{} is not a folder that only this user can write to; {meanwhile} (set TMPDIR to a folder of your own)",
        path.display()
    )
}

/// Makes the parent of all scratch folders of this user, if there is none. If the usual parent cannot be used, makes another
/// one, and also gives the path of the usual one.
pub(super) fn make(
    temporary: &Path,
    name_use: NameUse,
) -> Result<(PathBuf, Option<PathBuf>), NoScratch> {
    let path = usual_root(temporary);
    if is_private(&made_or_found(&path)?) {
        return Ok((path, None));
    }
    if name_use == NameUse::InResult {
        return Err(NoScratch::Foreign(path));
    }
    // Make a parent for this call alone, under a name that nobody can have guessed.
    for number in 0..100 {
        let own = PathBuf::from(format!("{}.{}", path.display(), unique_name(number)));
        match fs::DirBuilder::new().mode(0o700).create(&own) {
            Ok(()) => return Ok((own, Some(path))),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(NoScratch::Foreign(path))
}

/// Makes the folder if there is none, and looks at it.
fn made_or_found(path: &Path) -> io::Result<fs::Metadata> {
    for _ in 0..1000 {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        match fs::symlink_metadata(path) {
            // The last process that leaves the folder removes it, perhaps just now.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
    }
    Err(io::Error::other(
        "something keeps deleting the parent of private folders",
    ))
}

fn unique_name(number: u32) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.as_nanos());
    format!("{:x}-{nanos:x}-{number:x}", std::process::id())
}

/// The usual parent of scratch folders, if others can write to it and it cannot be used. `None` if it can be used or does not
/// exist.
pub fn unusable_root(temporary: &Path) -> Option<PathBuf> {
    let path = usual_root(temporary);
    let found = fs::symlink_metadata(&path).ok()?;
    (!is_private(&found)).then_some(path)
}

/// Whether it is a folder to which only this user can write.
fn is_private(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0
}

/// The path of the usual parent. The folder may not exist.
pub(super) fn usual_root(temporary: &Path) -> PathBuf {
    // gcc names files by their real path where that is shorter, and such a name must be known as warpcc's own.
    let real = temporary.canonicalize();
    let temporary = real.as_deref().unwrap_or(temporary);
    let has_plain_characters = |p: &Path| {
        p.to_str().is_some_and(|s| {
            s.chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-@+=".contains(c))
        })
    };
    // No special characters: nvcc passes the path to a shell, and warpcc looks for it in stubs.
    let base = if temporary.is_absolute() && has_plain_characters(temporary) {
        temporary
    } else {
        Path::new("/tmp")
    };
    let user = rustix::process::geteuid().as_raw();
    // The budget's file in /dev/shm has the name `warpcc-UID`, so this is another name.
    base.join(format!("warpcc-{user}-builds"))
}

/// Removes folders that a killed process left behind more than an hour ago.
pub fn sweep(temporary: &Path) {
    let usual = usual_root(temporary);
    if fs::symlink_metadata(&usual).is_ok_and(|found| is_private(&found)) {
        return sweep_root(&usual);
    }
    // The usual parent cannot be used. Earlier calls have made other parents next to it.
    let name = usual.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.");
    let beside = usual.parent().map(fs::read_dir);
    for entry in beside.into_iter().flatten().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(&prefix);
        if ours && is_old(&entry) && entry.metadata().is_ok_and(|found| is_private(&found)) {
            sweep_root(&entry.path());
        }
    }
}

fn is_old(entry: &fs::DirEntry) -> bool {
    entry.metadata().and_then(|m| m.modified()).is_ok_and(|m| {
        SystemTime::now()
            .duration_since(m)
            .is_ok_and(|age| age > Duration::from_secs(3600))
    })
}

fn sweep_root(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries.filter(is_old) {
        let lock_path = entry.path();
        if lock_path.extension().is_none_or(|e| e != "lock") {
            continue;
        }
        let Ok(lock) = File::open(&lock_path) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&lock_path.with_extension(""), &lock_path);
        }
    }
    let _ = fs::remove_dir(root);
}
