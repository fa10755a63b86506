//! Finds the compiler that a launcher call means: never warpcc itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use warpcc_engine::process::is_executable;

/// Whether the name is nvcc's: `nvcc`, `nvcc-13.0`, `/opt/cuda/bin/nvcc`.
pub fn is_nvcc(name: &OsStr) -> bool {
    let Some(stem) = Path::new(name).file_name().and_then(OsStr::to_str) else {
        return false;
    };
    stem == "nvcc"
        || stem
            .strip_prefix("nvcc-")
            .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// The file behind a compiler's name: the path as given, or the first one in `path` that is not
/// warpcc under another name.
pub fn compiler(name: &OsStr, path: Option<&OsStr>, ourselves: &[PathBuf]) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.components().count() > 1 || given.is_absolute() {
        if !is_ourselves(given, ourselves) {
            return Some(given.to_owned());
        }
        // A path to a masquerade link means the compiler of that name behind it.
        return search(given.file_name()?, path, ourselves);
    }
    search(name, path, ourselves)
}

fn search(name: &OsStr, path: Option<&OsStr>, ourselves: &[PathBuf]) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file) && !is_ourselves(file, ourselves))
}

/// Whether `file` is one of `ourselves` (this program, and any warpcc that runs it), through any
/// number of links.
pub fn is_ourselves(file: &Path, ourselves: &[PathBuf]) -> bool {
    file.canonicalize()
        .is_ok_and(|real| ourselves.contains(&real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["nvcc", "/usr/local/cuda/bin/nvcc", "nvcc-13.0"] {
            assert!(is_nvcc(OsStr::new(name)), "{name}");
        }
        for name in ["gcc", "nvcc_test", "nvcc-wrapper", "/usr/bin/nvc++"] {
            assert!(!is_nvcc(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_link_to_ourselves_is_passed_over() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::create_dir(&a)?;
        std::fs::create_dir(&b)?;
        let ourselves = [Path::new("/bin/true").canonicalize()?];
        std::os::unix::fs::symlink(&ourselves[0], a.join("nvcc"))?;
        std::fs::copy("/bin/ls", b.join("nvcc"))?;
        let path = std::env::join_paths([&a, &b]).map_err(std::io::Error::other)?;
        let found = compiler(OsStr::new("nvcc"), Some(&path), &ourselves);
        assert_eq!(found, Some(b.join("nvcc")));
        let through_link = compiler(a.join("nvcc").as_os_str(), Some(&path), &ourselves);
        assert_eq!(through_link, Some(b.join("nvcc")));
        Ok(())
    }
}
