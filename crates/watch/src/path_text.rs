//! Paths that are compared as texts.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path for maps and sets with thousands of entries. `PathBuf` compares component by component, which for the paths of one
/// preprocessor costs more than hashing its files.
///
/// Double separators and `/./` are removed, so that two spellings that are equal as `PathBuf` are equal here too. The end of
/// a path stays as it is: `a/` and `a/.` exist only if `a` is a folder.
///
/// A map with these keys is read by text: `map.get(path.as_os_str())`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathText(Box<OsStr>);

impl PathText {
    /// Whether the path is `folder`, or below it. `folder` has no separator at its end, and no doubled one.
    pub fn is_inside(&self, folder: &Path) -> bool {
        let folder = folder.as_os_str().as_bytes();
        let rest = self.0.as_bytes().strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }
}

/// The text without doubled separators and `/./`; `None` if there are none.
fn plain(text: &[u8]) -> Option<Vec<u8>> {
    let is_superfluous = |at: usize| {
        let rest = &text[at..];
        rest.starts_with(b"//") || rest.starts_with(b"/./")
    };
    let mut pairs = text.windows(2).enumerate();
    let (first, _) = pairs.find(|(at, pair)| {
        pair[0] == b'/' && matches!(pair[1], b'/' | b'.') && is_superfluous(*at)
    })?;
    let mut plain = text[..first].to_vec();
    let mut at = first;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(b"/./") {
            at += 2;
        } else if rest.starts_with(b"//") {
            at += 1;
        } else {
            plain.push(text[at]);
            at += 1;
        }
    }
    Some(plain)
}

impl From<&Path> for PathText {
    fn from(path: &Path) -> Self {
        match plain(path.as_os_str().as_bytes()) {
            Some(plain) => Self(std::ffi::OsString::from_vec(plain).into_boxed_os_str()),
            None => Self(path.as_os_str().into()),
        }
    }
}

impl From<PathBuf> for PathText {
    fn from(path: PathBuf) -> Self {
        match plain(path.as_os_str().as_bytes()) {
            Some(plain) => Self(std::ffi::OsString::from_vec(plain).into_boxed_os_str()),
            None => Self(path.into_os_string().into_boxed_os_str()),
        }
    }
}

impl From<PathText> for PathBuf {
    fn from(path: PathText) -> Self {
        path.0.into_os_string().into()
    }
}

impl Deref for PathText {
    type Target = Path;

    fn deref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl AsRef<Path> for PathText {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Borrow<OsStr> for PathText {
    fn borrow(&self) -> &OsStr {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_one() {
        for (spelled, plain) in [
            ("/a//b", "/a/b"),
            ("/a/./b", "/a/b"),
            ("/a/.//./b", "/a/b"),
            ("//a", "/a"),
            ("a/../b", "a/../b"),
            ("./a", "./a"),
            ("a/.b/c", "a/.b/c"),
            ("a/", "a/"),
            ("a/.", "a/."),
            ("a//", "a/"),
            ("a/./", "a/"),
            ("", ""),
            ("/", "/"),
            (".", "."),
        ] {
            assert_eq!(&*PathText::from(Path::new(spelled)).0, OsStr::new(plain));
            assert_eq!(
                &*PathText::from(PathBuf::from(spelled)).0,
                OsStr::new(plain)
            );
            assert_eq!(Path::new(spelled), Path::new(plain), "{spelled}");
        }
    }

    #[test]
    fn a_folder_holds_itself_and_what_is_below() {
        let is = |path: &str| PathText::from(Path::new(path)).is_inside(Path::new("/a/b"));
        assert!(is("/a/b") && is("/a/b/c") && is("/a//b/c") && is("/a/b/"));
        assert!(!is("/a/bc") && !is("/a") && !is("/c/a/b"));
    }
}
