//! Resolves the links in many paths with the same folders: each folder is walked once.

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

/// The number of links that the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// The folders on the way to the paths so far, for one examination of the file system: each is examined once.
#[derive(Default)]
pub(super) struct Links {
    folders: Vec<Folder>,
    /// The folder that was used last, and is mostly used next.
    latest: usize,
}

/// A folder's absolute path as it was named, without the slash at its end.
struct Folder {
    named: Vec<u8>,
    /// The resolved path, if it differs.
    real: Option<Vec<u8>>,
}

impl Folder {
    fn real(&self) -> &[u8] {
        self.real.as_deref().unwrap_or(&self.named)
    }
}

impl Links {
    /// Resolves all links in an absolute path, like `realpath`.
    ///
    /// # Errors
    /// The path leads nowhere, or cannot be resolved.
    pub(super) fn resolve(&mut self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let real = self.follow(path, &mut Walk::default())?;
        Ok(real.unwrap_or_else(|| path.to_vec()))
    }

    /// Whether an absolute path leads to `target`. The caller has just seen that its last name exists and is no link.
    ///
    /// # Errors
    /// See [`Links::resolve`].
    pub(super) fn plain_leads_to(&mut self, path: &[u8], target: &[u8]) -> Result<bool, Errno> {
        let slash = memchr::memrchr(b'/', path).ok_or(Errno::INVAL)?;
        let (above, name) = path.split_at(slash);
        if matches!(name, b"/" | b"/." | b"/..") {
            return Ok(self.resolve(path)? == target);
        }
        let mut walk = Walk {
            leads_on: true,
            ..Walk::default()
        };
        let folder = self.folder(above, &mut walk)?;
        let real = folder.real();
        let real = real.strip_suffix(b"/").unwrap_or(real);
        Ok(target.strip_prefix(real) == Some(name))
    }

    /// The resolved path; `None` if the path has no links and is in its shortest form.
    fn follow(&mut self, path: &[u8], walk: &mut Walk) -> Result<Option<Vec<u8>>, Errno> {
        let slash = memchr::memrchr(b'/', path).ok_or(Errno::INVAL)?;
        let folder = self.folder(&path[..slash], walk)?;
        let name = &path[slash + 1..];
        match name {
            b"" | b"." => return Ok(Some(folder.real().to_vec())),
            b".." => {
                let real = folder.real();
                let above = memchr::memrchr(b'/', real).unwrap_or(0);
                return Ok(Some(real[..above.max(1)].to_vec()));
            }
            _ => {}
        }
        let there = match &folder.real {
            Some(real) if !folder.named.is_empty() => Some(beneath(real, name)),
            _ => None,
        };
        let asked = there.as_deref().unwrap_or(path);
        match rustix::fs::readlinkat_raw(CWD, asked, &mut [0_u8; 1]) {
            Err(Errno::INVAL) => Ok(there),
            Err(error) => Err(error),
            Ok(_) if walk.links == MOST_LINKS => Err(Errno::LOOP),
            Ok(_) => {
                walk.links += 1;
                let target = rustix::fs::readlinkat(CWD, asked, Vec::new())?;
                let target = match target.to_bytes() {
                    absolute @ [b'/', ..] => absolute.to_vec(),
                    relative => beneath(folder.real(), relative),
                };
                let real = self.follow(&target, walk)?;
                Ok(Some(real.unwrap_or(target)))
            }
        }
    }

    /// The folder of this path, which is followed by a slash.
    fn folder(&mut self, path: &[u8], walk: &mut Walk) -> Result<&Folder, Errno> {
        let is_it = |folder: &Folder| folder.named == path;
        if !self.folders.get(self.latest).is_some_and(is_it) {
            self.latest = match self.folders.iter().position(is_it) {
                Some(known) => known,
                None => {
                    let real = self.walk(path, walk)?;
                    let named = path.to_vec();
                    self.folders.push(Folder { named, real });
                    self.folders.len() - 1
                }
            };
        }
        self.folders.get(self.latest).ok_or(Errno::INVAL)
    }

    fn walk(&mut self, path: &[u8], walk: &mut Walk) -> Result<Option<Vec<u8>>, Errno> {
        if path.iter().all(|byte| *byte == b'/') {
            return Ok(Some(b"/".to_vec()));
        }
        let real = self.follow(path, walk)?;
        if !walk.leads_on {
            let there = real.as_deref().unwrap_or(path);
            let found = rustix::fs::statat(CWD, there, AtFlags::SYMLINK_NOFOLLOW)?;
            if !FileType::from_raw_mode(found.st_mode).is_dir() {
                return Err(Errno::NOTDIR);
            }
        }
        Ok(real)
    }
}

/// One path while it is being resolved.
#[derive(Default)]
struct Walk {
    /// The number of links followed so far.
    links: u32,
    /// Whether the whole path is known to exist, so that all names before the last are folders.
    leads_on: bool,
}

fn beneath(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of paths")]
    fn paths_resolve_as_with_realpath() {
        let space = tempfile::tempdir().expect("a folder");
        let root = space.path();
        std::fs::create_dir_all(root.join("a/b/c")).expect("folders");
        std::fs::write(root.join("a/file"), "").expect("a file");
        for (name, target) in [
            ("up", "a/b/.."),
            ("far", "up/b/../b/c"),
            ("a/b/c/file", "../../file"),
            ("loop", "loop"),
            ("gone", "a/nothing"),
            ("slash", "a/b/"),
            ("file-with-slash", "a/file/"),
            ("whole", "/tmp/../tmp//."),
        ] {
            symlink(target, root.join(name)).expect("a link");
        }
        for level in 0..45 {
            let target = if level == 0 {
                "a".to_owned()
            } else {
                format!("deep{}", level - 1)
            };
            symlink(target, root.join(format!("deep{level}"))).expect("a link");
        }
        let mut links = Links::default();
        let (mut right, mut plain) = (0, 0);
        for path in [
            "",
            "/",
            ".",
            "a",
            "a/",
            "a//b",
            "a/./b/../b/.",
            "a/file",
            "a/file/",
            "a/file/.",
            "a/file/..",
            "a/file/x",
            "a/b/c/file",
            "up/b",
            "up/file",
            "up/..",
            "far",
            "far/file",
            "far/../..",
            "loop",
            "loop/x",
            "gone",
            "gone/x",
            "nothing",
            "nothing/..",
            "slash",
            "slash/c",
            "file-with-slash",
            "whole",
            "whole/..",
            "deep30",
            "deep38/b",
            "deep39/b",
            "deep44",
            "../../../../../../../../..",
            "a/b/../../../..",
        ] {
            let path = format!("{}/{path}", root.display());
            let expected = Path::new(&path).canonicalize();
            let found = links.resolve(path.as_bytes());
            right += u32::from(expected.is_ok());
            if let (Ok(expected), Ok(last)) = (&expected, std::fs::symlink_metadata(&path))
                && !last.is_symlink()
            {
                let expected = expected.as_os_str().as_bytes();
                let mut other = Links::default();
                assert_eq!(
                    other.plain_leads_to(path.as_bytes(), expected),
                    Ok(true),
                    "{path}"
                );
                assert_eq!(
                    links.plain_leads_to(path.as_bytes(), expected),
                    Ok(true),
                    "{path}"
                );
                assert_eq!(
                    links.plain_leads_to(path.as_bytes(), b"/x"),
                    Ok(false),
                    "{path}"
                );
                plain += 1;
            }
            match (expected, found) {
                (Ok(expected), Ok(found)) => {
                    assert_eq!(expected.as_os_str().as_bytes(), found, "{path}")
                }
                (Err(expected), Err(found)) => {
                    assert_eq!(
                        expected.raw_os_error(),
                        Some(found.raw_os_error()),
                        "{path}"
                    );
                }
                (expected, found) => panic!("{path}: {expected:?} {found:?}"),
            }
        }
        assert!(right > 15 && plain > 10);
    }
}
