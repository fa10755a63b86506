//! Paths without links, of many paths in the same folders: each folder is walked once.

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

/// As many links as the kernel follows on one way.
const MOST_LINKS: u32 = 40;

/// What is known of the folders on the way to paths so far. For one look at the file system: it is not asked again.
#[derive(Default)]
pub(super) struct Links {
    folders: Vec<Folder>,
    /// The one that was wanted last, and mostly is wanted next.
    latest: usize,
}

/// A folder's absolute path as it was named, and without links.
struct Folder {
    named: Vec<u8>,
    real: Vec<u8>,
}

impl Links {
    /// What an absolute path leads to, without links, as `realpath` tells it.
    ///
    /// # Errors
    /// It leads nowhere, or that cannot be told.
    pub(super) fn resolve(&mut self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.follow(path, &mut 0)
    }

    /// Whether an absolute path, whose last name was just seen to be no link, leads to `told`.
    ///
    /// # Errors
    /// As [`Links::resolve`].
    pub(super) fn plain_leads_to(&mut self, path: &[u8], told: &[u8]) -> Result<bool, Errno> {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (above, name) = path.split_at(slash.ok_or(Errno::INVAL)?);
        if matches!(name, b"/" | b"/." | b"/..") {
            return Ok(self.resolve(path)? == told);
        }
        let at = self.folder(above, &mut 0)?;
        let real = self
            .folders
            .get(at)
            .map_or(b"".as_slice(), |folder| &folder.real);
        let real = real.strip_suffix(b"/").unwrap_or(real);
        Ok(told.strip_prefix(real) == Some(name))
    }

    fn follow(&mut self, path: &[u8], links: &mut u32) -> Result<Vec<u8>, Errno> {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let slash = slash.ok_or(Errno::INVAL)?;
        let at = self.folder(&path[..slash], links)?;
        let folder = self
            .folders
            .get(at)
            .map_or_else(Vec::new, |folder| folder.real.clone());
        let name = &path[slash + 1..];
        match name {
            b"" | b"." => return Ok(folder),
            b".." => {
                let above = folder.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                return Ok(folder[..above.max(1)].to_vec());
            }
            _ => {}
        }
        let there = beneath(&folder, name);
        match rustix::fs::readlinkat(CWD, there.as_slice(), Vec::new()) {
            Err(Errno::INVAL) => Ok(there),
            Err(error) => Err(error),
            Ok(_) if *links == MOST_LINKS => Err(Errno::LOOP),
            Ok(target) => {
                *links += 1;
                match target.to_bytes() {
                    absolute @ [b'/', ..] => self.follow(absolute, links),
                    relative => self.follow(&beneath(&folder, relative), links),
                }
            }
        }
    }

    /// Where the folder of this path stands among those known; a path that is followed by a slash.
    fn folder(&mut self, path: &[u8], links: &mut u32) -> Result<usize, Errno> {
        let is_it = |folder: &Folder| folder.named == path;
        if self.folders.get(self.latest).is_some_and(is_it) {
            return Ok(self.latest);
        }
        let known = self.folders.iter().position(is_it);
        let at = match known {
            Some(known) => known,
            None => {
                let real = self.walk(path, links)?;
                let named = path.to_vec();
                self.folders.push(Folder { named, real });
                self.folders.len() - 1
            }
        };
        self.latest = at;
        Ok(at)
    }

    fn walk(&mut self, path: &[u8], links: &mut u32) -> Result<Vec<u8>, Errno> {
        if path.iter().all(|byte| *byte == b'/') {
            return Ok(b"/".to_vec());
        }
        let real = self.follow(path, links)?;
        let found = rustix::fs::statat(CWD, real.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode).is_dir() {
            true => Ok(real),
            false => Err(Errno::NOTDIR),
        }
    }
}

fn beneath(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = folder.to_vec();
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
    fn what_realpath_says() {
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
            let told = Path::new(&path).canonicalize();
            let found = links.resolve(path.as_bytes());
            right += u32::from(told.is_ok());
            if let (Ok(told), Ok(last)) = (&told, std::fs::symlink_metadata(&path))
                && !last.is_symlink()
            {
                let told = told.as_os_str().as_bytes();
                let mut other = Links::default();
                assert_eq!(
                    other.plain_leads_to(path.as_bytes(), told),
                    Ok(true),
                    "{path}"
                );
                assert_eq!(
                    links.plain_leads_to(path.as_bytes(), told),
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
            match (told, found) {
                (Ok(told), Ok(found)) => assert_eq!(told.as_os_str().as_bytes(), found, "{path}"),
                (Err(told), Err(found)) => {
                    assert_eq!(told.raw_os_error(), Some(found.raw_os_error()), "{path}");
                }
                (told, found) => panic!("{path}: {told:?} {found:?}"),
            }
        }
        assert!(right > 15 && plain > 10);
    }
}
