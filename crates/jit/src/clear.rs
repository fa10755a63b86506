//! Empties a driver's cache: only what a driver puts there, and never through a link.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::compute_cache::{Contents, contents, is_bucket};

/// Why a folder is not cleared.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Nothing tells where it is.
    #[error("{0} is not an absolute path, so the folder is ambiguous")]
    Relative(PathBuf),
    /// A folder that contains more than a cache, such as a home directory.
    #[error("{0} is the root, the home folder or a folder above it, not a cache of its own")]
    TooHigh(PathBuf),
    /// Not an index and its folders: something else keeps files there.
    #[error("{0} does not look like a driver's cache: it has no `index` next to folders 0 to f")]
    NoCache(PathBuf),
    /// The system says no.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

/// The result of clearing.
#[derive(Debug, Serialize)]
pub struct Cleared {
    /// The folder itself, after links to it were followed.
    pub folder: PathBuf,
    /// Its contents before.
    pub before: Contents,
    /// The entries that were removed, by name.
    pub removed: Vec<String>,
    /// Other entries of the folder, which were left, by name.
    pub left: Vec<String>,
    /// The entries that could not be removed, with the reasons.
    pub failed: Vec<String>,
}

/// Removes the index and the folders 0 to f. The folder stays, and so does everything else in it.
///
/// # Errors
/// The folder must not be cleared, or cannot be read.
pub fn clear(path: &Path, home: Option<&Path>) -> Result<Cleared, Refused> {
    if path.is_relative() {
        return Err(Refused::Relative(path.to_owned()));
    }
    // The driver follows a link to the cache's folder, and so does this. Links inside the folder are not followed.
    let real = path
        .canonicalize()
        .map_err(|error| Refused::Io(path.to_owned(), error))?;
    let home = home.and_then(|home| home.canonicalize().ok());
    let holds_home = home.is_some_and(|home| home.starts_with(&real));
    if real.parent().is_none() || holds_home {
        return Err(Refused::TooHigh(real));
    }
    let before = contents(&real);
    let wrong = |error| Refused::Io(real.clone(), error);
    let mut cleared = Cleared {
        folder: real.clone(),
        before,
        removed: Vec::new(),
        left: Vec::new(),
        failed: Vec::new(),
    };
    let mut entries = fs::read_dir(&real)
        .map_err(wrong)?
        .collect::<io::Result<Vec<_>>>()
        .map_err(wrong)?;
    // Cleared before, or never used.
    if entries.is_empty() {
        return Ok(cleared);
    }
    if !before.is_cache {
        return Err(Refused::NoCache(real));
    }
    // The index is removed last, so that the folder is still recognised as a cache if this ends halfway.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(wrong)?;
        let removed = if kind.is_dir() && is_bucket(&name) {
            // It does not follow links, also not one that takes the folder's place meanwhile.
            fs::remove_dir_all(entry.path())
        } else if kind.is_file() && name == "index" {
            fs::remove_file(entry.path())
        } else {
            cleared.left.push(name);
            continue;
        };
        match removed {
            Ok(()) => cleared.removed.push(name),
            Err(error) => cleared.failed.push(format!("{name}: {error}")),
        }
    }
    Ok(cleared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_what_a_driver_made_goes() -> io::Result<()> {
        let top = tempfile::tempdir()?;
        let (cache, outside) = (top.path().join("cache"), top.path().join("outside"));
        fs::create_dir_all(cache.join("0/f"))?;
        fs::create_dir_all(&outside)?;
        fs::write(outside.join("precious"), "x")?;
        fs::write(cache.join("0/f/00aa"), "entry")?;
        fs::write(cache.join("index"), "i")?;
        fs::write(cache.join("mine.txt"), "x")?;
        fs::create_dir(cache.join("10"))?;
        symlink(&outside, cache.join("1"))?;
        symlink(&outside, cache.join("0/e"))?;
        let link = top.path().join("link");
        symlink(&cache, &link)?;
        let cleared = clear(&link, None).expect("a cache");
        assert_eq!(cleared.removed, ["0", "index"]);
        assert_eq!(cleared.left, ["1", "10", "mine.txt"]);
        assert!(cleared.failed.is_empty() && outside.join("precious").exists());
        assert!(cache.join("mine.txt").exists() && !cache.join("0").exists());
        let empty = top.path().join("empty");
        fs::create_dir(&empty)?;
        assert!(
            clear(&empty, None)
                .expect("nothing to do")
                .removed
                .is_empty()
        );
        Ok(())
    }

    #[test]
    fn a_folder_that_is_not_a_cache_is_refused() -> io::Result<()> {
        let top = tempfile::tempdir()?;
        let home = top.path().join("home");
        fs::create_dir_all(home.join("a/0"))?;
        fs::write(home.join("index"), "")?;
        for path in [Path::new("/"), top.path(), &home] {
            let answer = clear(path, Some(&home));
            assert!(
                matches!(answer, Err(Refused::TooHigh(_))),
                "{path:?}: {answer:?}"
            );
        }
        assert!(matches!(
            clear(&home.join("a"), Some(&home)),
            Err(Refused::NoCache(_))
        ));
        assert!(matches!(
            clear(Path::new("a"), None),
            Err(Refused::Relative(_))
        ));
        assert!(matches!(
            clear(&home.join("none"), None),
            Err(Refused::Io(..))
        ));
        assert!(home.join("index").exists());
        Ok(())
    }
}
