//! Finds a program in `PATH`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The paths that a program's file would have in each folder of `PATH`, in order. Every hit checks dozens of them, so they
/// share one buffer.
pub(crate) struct FilesInPath<'a> {
    folders: std::slice::Split<'a, u8, fn(&u8) -> bool>,
    directory: &'a [u8],
    name: &'a [u8],
    file: Vec<u8>,
}

impl<'a> FilesInPath<'a> {
    /// For a name without slashes; relative folders are below `directory`.
    pub(crate) fn new(path: &'a OsStr, directory: &'a Path, name: &'a OsStr) -> Self {
        let is_colon: fn(&u8) -> bool = |byte| *byte == b':';
        Self {
            folders: path.as_bytes().split(is_colon),
            directory: directory.as_os_str().as_bytes(),
            name: name.as_bytes(),
            file: Vec::with_capacity(256),
        }
    }

    /// The next path.
    pub(crate) fn next(&mut self) -> Option<&Path> {
        let folder = self.folders.next()?;
        self.file.clear();
        if folder.first() != Some(&b'/') {
            self.file.extend_from_slice(self.directory);
            self.end_with_slash();
        }
        self.file.extend_from_slice(folder);
        self.end_with_slash();
        self.file.extend_from_slice(self.name);
        Some(Path::new(OsStr::from_bytes(&self.file)))
    }

    fn end_with_slash(&mut self) {
        if self.file.last().is_some_and(|last| *last != b'/') {
            self.file.push(b'/');
        }
    }
}

/// Finds `name` as execvp would, in the `PATH` of `environment`.
pub fn find_program(name: &str, path: Option<&OsStr>, directory: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(directory.join(name));
    }
    let mut files = FilesInPath::new(path?, directory, name.as_ref());
    while let Some(file) = files.next() {
        if is_executable(file) {
            return Some(file.to_owned());
        }
    }
    None
}

/// Whether `file` is a regular file with an execute permission.
pub fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_standard_library_joins_them() {
        for path in ["", ":", "/a:/b/", "a:./b:", "/a::/b", "//:/"] {
            for directory in ["/", "/work", "/work/"] {
                let directory = Path::new(directory);
                let mut files = FilesInPath::new(OsStr::new(path), directory, OsStr::new("ld"));
                for folder in std::env::split_paths(path) {
                    let wanted = directory.join(folder).join("ld");
                    let file = files.next().map(|file| file.as_os_str());
                    assert_eq!(file, Some(wanted.as_os_str()), "{path:?} {directory:?}");
                }
                assert_eq!(files.next(), None, "{path:?}");
            }
        }
    }
}
