//! Paths within a container's root: a link to `/opt/x` leads to that folder of the root, and none leads out of it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links on the way to one file; a circle has more.
const MOST_LINKS: usize = 40;

/// The folder that is `/`.
#[derive(Debug, Clone)]
pub struct Root {
    /// None for this machine's own.
    folder: Option<PathBuf>,
}

impl Root {
    /// The one of this machine.
    pub fn of_system() -> Self {
        Self { folder: None }
    }

    /// The one of a container that has its files here.
    pub fn at(folder: &Path) -> Self {
        // The way to it is this machine's.
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { folder: Some(real) }
    }

    /// The absolute path in the root, as it is from here.
    pub fn inside(&self, path: &Path) -> PathBuf {
        match (&self.folder, path.strip_prefix("/")) {
            (Some(root), Ok(rest)) => root.join(rest),
            _ => path.to_owned(),
        }
    }

    /// What the path, which begins in the root, is when all links have been followed. None where nothing is there.
    pub fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let Some(root) = &self.folder else {
            return path.canonicalize().ok();
        };
        let path = match path.strip_prefix(root) {
            Ok(below) => below.to_owned(),
            // Named by another way to the root.
            Err(_) => {
                let parent = path.ancestors().find_map(|above| {
                    let real = above.canonicalize().ok()?;
                    (real == *root).then_some(above)
                })?;
                path.strip_prefix(parent).ok()?.to_owned()
            }
        };
        let mut real = root.clone();
        let words = |path: &Path| -> VecDeque<OsString> {
            path.components()
                .map(|part| part.as_os_str().to_owned())
                .collect()
        };
        let mut left = words(&path);
        let mut links = 0;
        while let Some(word) = left.pop_front() {
            match Path::new(&word).components().next()? {
                Component::ParentDir => {
                    if real != *root {
                        real.pop();
                    }
                }
                Component::RootDir => real.clone_from(root),
                Component::Normal(name) => {
                    let next = real.join(name);
                    let Ok(target) = next.read_link() else {
                        real = next;
                        continue;
                    };
                    links += 1;
                    if links > MOST_LINKS {
                        return None;
                    }
                    let mut target = words(&target);
                    target.append(&mut left);
                    left = target;
                }
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        real.symlink_metadata().ok().map(|_| real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_in_the_root() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().canonicalize().expect("a path").join("root");
        fs::create_dir_all(at.join("opt/x")).expect("made");
        fs::create_dir_all(at.join("usr")).expect("made");
        fs::write(at.join("opt/x/file"), "").expect("written");
        fs::write(folder.path().join("outside"), "").expect("written");
        for (link, target) in [
            ("usr/absolute", "/opt/x"),
            ("usr/relative", "../opt/x"),
            ("usr/out", "../../../outside"),
            ("usr/round", "/usr/round"),
            ("usr/nothing", "/nothing"),
        ] {
            symlink(target, at.join(link)).expect("linked");
        }
        let root = Root::at(&at);
        let file = Some(at.join("opt/x/file"));
        for path in [
            "opt/x/file",
            "usr/absolute/file",
            "usr/relative/file",
            "usr/../../opt/x/./file",
        ] {
            assert_eq!(root.resolve(&at.join(path)), file, "{path}");
        }
        for path in ["usr/out", "usr/round", "usr/nothing", "usr/absolute/other"] {
            assert_eq!(root.resolve(&at.join(path)), None, "{path}");
        }
        assert_eq!(root.inside(Path::new("/opt/x")), at.join("opt/x"));
    }
}
