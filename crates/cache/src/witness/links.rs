//! Paths without links, of many paths in the same folders: each folder is walked once.

use std::collections::HashMap;

use rustix::fs::CWD;
use rustix::io::Errno;

use super::Witness;

/// As many links as the kernel follows on one way.
const MOST_LINKS: u32 = 40;

/// What is known of the folders on the way to paths so far. For one look at the file system: it is not asked again.
#[derive(Default)]
pub(super) struct Links<'a> {
    /// Absolute paths of folders, as they were named, and what they are without links.
    folders: HashMap<Vec<u8>, Vec<u8>>,
    /// Files in order of their paths, and of each whether its last name was just seen to be no link.
    seen: Option<(&'a Witness, &'a [bool])>,
}

impl<'a> Links<'a> {
    /// With what was just seen of a witness' files: whether the last name of each is there and no link.
    pub(super) fn after_looking_at(witness: &'a Witness, plain: &'a [bool]) -> Links<'a> {
        Links {
            folders: HashMap::new(),
            seen: Some((witness, plain)),
        }
    }

    fn is_plain(&self, path: &[u8]) -> bool {
        self.seen.is_some_and(|(witness, plain)| {
            let text = |at| witness.text_at(at).to_bytes();
            let files = &witness.files;
            let found = files.binary_search_by(|file| text(file.path).cmp(path));
            found.is_ok_and(|index| plain.get(index) == Some(&true))
        })
    }

    /// What an absolute path leads to, without links, as `realpath` tells it.
    ///
    /// # Errors
    /// It leads nowhere, or that cannot be told.
    pub(super) fn resolve(&mut self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.follow(path, &mut 0)
    }

    fn follow(&mut self, path: &[u8], links: &mut u32) -> Result<Vec<u8>, Errno> {
        let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else {
            return Err(Errno::INVAL);
        };
        let (folder, name) = (self.folder(&path[..slash], links)?, &path[slash + 1..]);
        match name {
            b"" | b"." => return Ok(folder),
            b".." => {
                let above = folder.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                return Ok(folder[..above.max(1)].to_vec());
            }
            _ => {}
        }
        let there = beneath(&folder, name);
        if self.is_plain(path) {
            return Ok(there);
        }
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

    /// A path that is followed by a slash: it has to be a folder.
    fn folder(&mut self, path: &[u8], links: &mut u32) -> Result<Vec<u8>, Errno> {
        if path.iter().all(|byte| *byte == b'/') {
            return Ok(b"/".to_vec());
        }
        if let Some(known) = self.folders.get(path) {
            return Ok(known.clone());
        }
        let real = self.follow(path, links)?;
        let found =
            rustix::fs::statat(CWD, real.as_slice(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() {
            return Err(Errno::NOTDIR);
        }
        self.folders.insert(path.to_vec(), real.clone());
        Ok(real)
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
        let mut right = 0;
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
            match (told, found) {
                (Ok(told), Ok(found)) => assert_eq!(told.as_os_str().as_bytes(), found, "{path}"),
                (Err(told), Err(found)) => {
                    assert_eq!(told.raw_os_error(), Some(found.raw_os_error()), "{path}");
                }
                (told, found) => panic!("{path}: {told:?} {found:?}"),
            }
        }
        assert!(right > 15);
    }
}
