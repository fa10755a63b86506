//! Writes the library to a place from which a process can load it, and makes the environment that loads it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// The variable with the path of the log.
pub const LOG_VARIABLE: &str = "WARPCC_WATCH_LOG";

/// The library; empty if it cannot be built (see `build.rs`).
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libwarpcc_watch.so"));

/// The library that reports the directory in [`FOLDER_VARIABLE`] to a process as its working directory; empty if it cannot
/// be built.
pub static FOLDER_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libwarpcc_folder.so"));

/// The variable with that directory.
pub const FOLDER_VARIABLE: &str = "WARPCC_FOLDER";

/// The variable that says which files a program may change.
pub const HOLD_VARIABLE: &str = "WARPCC_WATCH_HOLD";

/// The variable by which a program announces that a file is complete: see [`announce`].
pub const ANNOUNCE_VARIABLE: &str = "WARPCC_WATCH_ANNOUNCE";

/// The longest path of a log that the library accepts, without its NUL.
const LONGEST_LOG: usize = 4095;

/// Why a library and a log cannot be handed to a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unpreloadable {
    /// The loader splits `LD_PRELOAD` at spaces and colons and has no way to quote them, and expands `$`.
    #[error("the loader cannot be given the path {0:?}: it has a space, a colon or a $")]
    LibraryPath(PathBuf),
    /// The process may change its working directory.
    #[error("the path {0:?} is not absolute")]
    Relative(PathBuf),
    /// The library copies it into a buffer of fixed size.
    #[error("the log's path is too long or contains NUL")]
    LogPath,
}

/// Whether this build contains a library for the system it runs on.
#[must_use]
pub fn available() -> bool {
    !LIBRARY.is_empty()
}

/// Whether the loader can load a library from `dir`.
#[must_use]
pub fn can_preload_from(dir: &Path) -> bool {
    dir.is_absolute() && is_plain(dir)
}

/// Whether the loader uses the path as it is.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.iter().any(|byte| b" :$\t\n\0".contains(byte))
}

/// Writes the library into `dir`, unless it is there, and returns its path.
///
/// Its name contains a hash of its content, so versions do not disturb each other's running processes.
///
/// # Errors
/// The library cannot be written, there is none for this system (`Unsupported`), or no program can run from `dir`.
pub fn install(dir: &Path) -> io::Result<PathBuf> {
    if !available() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no watching library for this system",
        ));
    }
    // The loader cannot map a library from there. A file system that does not say so may still do.
    if rustix::fs::statvfs(dir).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
        let message = "it is mounted noexec";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let path = dir.join(format!("watch-{:016x}.so", content_hash(LIBRARY)));
    match fs::read(&path) {
        Ok(content) if content == LIBRARY => return Ok(path),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let temporary = temporary_name(&path);
    let written = write_new(&temporary).and_then(|()| fs::rename(&temporary, &path));
    if let Err(error) = written {
        // This is best effort: the error to report is the one above.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(path)
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(path)?;
    file.write_all(LIBRARY)
}

/// A name to which no other process or thread writes.
fn temporary_name(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = path.as_os_str().to_owned();
    let nanos = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |elapsed| elapsed.as_nanos());
    name.push(format!(
        ".{}-{}-{nanos:x}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    name.into()
}

/// FNV-1a, 64 bits: the name for a version. The content itself is compared before it is used.
fn content_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The variables that make a process load the library, after the libraries that the user preloads.
///
/// # Errors
/// The loader or the library cannot take one of these paths.
pub fn environment(
    library: &Path,
    log: &Path,
    inherited_preload: Option<&OsStr>,
) -> Result<[(OsString, OsString); 2], Unpreloadable> {
    for path in [library, log] {
        if !path.is_absolute() {
            return Err(Unpreloadable::Relative(path.to_owned()));
        }
    }
    if !is_plain(library) {
        return Err(Unpreloadable::LibraryPath(library.to_owned()));
    }
    let log = log.as_os_str();
    if log.len() > LONGEST_LOG || log.as_bytes().contains(&0) {
        return Err(Unpreloadable::LogPath);
    }
    let mut preload = OsString::new();
    if let Some(users) = inherited_preload.filter(|users| !users.is_empty()) {
        preload.push(users);
        preload.push(":");
    }
    preload.push(library);
    Ok([
        ("LD_PRELOAD".into(), preload),
        (LOG_VARIABLE.into(), log.to_owned()),
    ])
}

/// The variable that makes a process end itself, with its process group, before it changes a file that is not below one of the
/// folders `own`; [`Observed::held`](crate::Observed::held) has the file. It does not apply to the executables whose names are
/// `exempt`. The process must have a group of its own.
pub fn hold(own: &[PathBuf], exempt: &[&str]) -> (OsString, OsString) {
    let names: String = exempt.iter().map(|name| format!("{name}:")).collect();
    // The library compares with the kernel's names, which have no links. A folder whose name has a line break is left out.
    let own = own.iter().map(|folder| without_links(folder));
    let own = own
        .filter(|folder| folder.is_absolute() && !folder.as_os_str().as_bytes().contains(&b'\n'));
    let own: Vec<_> = own.map(PathBuf::into_os_string).collect();
    let mut value = OsString::from(names);
    // Without a folder nothing may be changed.
    value.push(match own.is_empty() {
        true => OsString::from("//"),
        false => own.join(OsStr::new("\n")),
    });
    (HOLD_VARIABLE.into(), value)
}

/// The variable that makes a program flush the stream of `file`, and write a byte into `pipe`, a pipe with a name, when it closes
/// the stream of `last`. The program opens both files with `fopen`, and by exactly these names. `None` where a name has a line
/// break.
pub fn announce(pipe: &Path, file: &Path, last: &Path) -> Option<(OsString, OsString)> {
    let lines = [pipe, file, last].map(Path::as_os_str);
    let is_broken = |line: &&OsStr| line.as_bytes().contains(&b'\n');
    (!lines.iter().any(is_broken)).then(|| (ANNOUNCE_VARIABLE.into(), lines.join(OsStr::new("\n"))))
}

/// The kernel's name of a folder, which may not exist yet.
fn without_links(folder: &Path) -> PathBuf {
    let real = |existing: &Path| fs::canonicalize(existing).ok();
    let mut places = folder
        .ancestors()
        .filter_map(|place| Some((place, real(place)?)));
    let Some((place, real)) = places.next() else {
        return folder.to_owned();
    };
    match folder.strip_prefix(place) {
        Ok(rest) if rest.as_os_str().is_empty() => real,
        Ok(rest) => real.join(rest),
        Err(_) => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_preload_comes_first() {
        let [(name, value), (log_name, log)] = environment(
            Path::new("/w.so"),
            Path::new("/a log"),
            Some(OsStr::new("/u.so")),
        )
        .unwrap();
        assert_eq!(
            (name.to_str(), value.to_str()),
            (Some("LD_PRELOAD"), Some("/u.so:/w.so"))
        );
        assert_eq!(
            (log_name.to_str(), log.to_str()),
            (Some("WARPCC_WATCH_LOG"), Some("/a log"))
        );
        let [(_, value), _] =
            environment(Path::new("/w.so"), Path::new("/l"), Some(OsStr::new(""))).unwrap();
        assert_eq!(value, "/w.so");
    }

    #[test]
    fn paths_the_loader_would_split_are_refused() {
        for path in ["/a b/w.so", "/a:b/w.so", "/$LIB/w.so", "w.so"] {
            assert!(
                environment(Path::new(path), Path::new("/l"), None).is_err(),
                "{path}"
            );
        }
        assert!(environment(Path::new("/w.so"), Path::new("l"), None).is_err());
    }

    #[test]
    fn installing_twice_writes_once_and_repairs() {
        if !available() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = install(dir.path()).unwrap();
        let first = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(install(dir.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), first);
        fs::write(&path, b"torn").unwrap();
        install(dir.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
