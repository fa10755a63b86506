//! Takes, restores and compares the contents of folders, with types, modes, links and link counts.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::by_chance::same_but_for_names;
use super::files_open;

/// The text after the name of a file whose content is not nvcc's.
pub const BYTES_DIFFER: &str = ": bytes differ";

/// One entry of a folder.
#[derive(Clone, Debug)]
struct TreeNode {
    kind: NodeContent,
    mode: u32,
    links: u64,
    inode: u64,
    changed: (i64, i64),
    modified: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NodeContent {
    File(Vec<u8>),
    Link(PathBuf),
    Folder,
    Other,
}

impl NodeContent {
    fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "a file",
            Self::Link(_) => "a link",
            Self::Folder => "a folder",
            Self::Other => "something else",
        }
    }
}

/// Everything below some folders.
#[derive(Clone, Debug, Default)]
pub struct Tree(BTreeMap<PathBuf, TreeNode>);

impl Tree {
    /// Reads these folders and everything below them.
    pub fn take(roots: &[PathBuf]) -> Self {
        let mut tree = Self::default();
        for root in roots {
            tree.walk(root);
        }
        tree
    }

    fn walk(&mut self, path: &Path) {
        let Ok(meta) = path.symlink_metadata() else {
            return;
        };
        let kind = if meta.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                self.walk(&entry.path());
            }
            NodeContent::Folder
        } else if meta.is_symlink() {
            NodeContent::Link(fs::read_link(path).unwrap_or_default())
        } else if meta.is_file() {
            NodeContent::File(fs::read(path).unwrap_or_default())
        } else {
            NodeContent::Other
        };
        let node = TreeNode {
            mode: meta.mode() & 0o7777,
            links: if kind == NodeContent::Folder {
                0
            } else {
                meta.nlink()
            },
            inode: meta.ino(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: meta.modified().ok(),
            kind,
        };
        self.0.insert(path.to_owned(), node);
    }

    /// Restores this state of the folders, whose state is `now`. Inodes stay where that is possible.
    pub fn put_back(&self, now: &Self) {
        // Scripts are among the files.
        let _quiet = files_open::no_process_starting();
        for (path, node) in now.0.iter().rev() {
            if self
                .0
                .get(path)
                .is_none_or(|old| old.kind.name() != node.kind.name())
            {
                remove(path);
            }
        }
        let kept =
            |path: &Path, old: &TreeNode| now.0.get(path).is_some_and(|n| n.inode == old.inode);
        // For a file with several names, a name that is still the same file, else any: the others are linked to it.
        let mut first: BTreeMap<u64, &Path> = BTreeMap::new();
        for (path, old) in self.0.iter().filter(|(_, old)| old.links > 1) {
            if kept(path, old) || !first.contains_key(&old.inode) {
                first.insert(old.inode, path);
            }
        }
        for linked in [false, true] {
            for (path, old) in &self.0 {
                let other = first.get(&old.inode).copied().filter(|other| other != path);
                let same = now.0.get(path).is_some_and(|n| {
                    n.inode == old.inode && n.changed == old.changed && n.mode == old.mode
                });
                if linked == other.is_some() && !same {
                    old.restore(path, other.filter(|_| !kept(path, old)));
                }
            }
        }
        // A folder's time is set last, because restoring its contents changes it.
        // An untouched folder also keeps the time of its last change: a cache that trusts this time is to be tested.
        for (path, old) in self
            .0
            .iter()
            .rev()
            .filter(|(_, n)| n.kind == NodeContent::Folder)
        {
            let changed = path
                .symlink_metadata()
                .map(|now| (now.ctime(), now.ctime_nsec()));
            if changed.ok() != Some(old.changed) {
                old.set_time(path);
            }
        }
    }

    /// Whether a file with a line for each call of a wrapper has the lines that nvcc left there, in any order. `in_any_number`:
    /// some may be there more often than others.
    pub fn has_the_same_lines(&self, got: &Self, path: &Path, in_any_number: bool) -> bool {
        let lines = |tree: &Self| match tree.0.get(path).map(|node| &node.kind) {
            Some(NodeContent::File(bytes)) => {
                let mut lines: Vec<_> = bytes
                    .split(|&byte| byte == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect();
                lines.sort_unstable();
                Some(lines)
            }
            _ => None,
        };
        let (Some(mut want), Some(mut got)) = (lines(self), lines(got)) else {
            return false;
        };
        if in_any_number {
            want.dedup();
            got.dedup();
        }
        want == got
    }

    /// The differences between the files that nvcc left and those that warpcc left.
    pub fn differences(&self, got: &Self, root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let name = |path: &Path| {
            path.strip_prefix(root)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        for (path, want) in &self.0 {
            let Some(node) = got.0.get(path) else {
                found.push(format!(
                    "{}: {} with nvcc, missing",
                    name(path),
                    want.kind.name()
                ));
                continue;
            };
            match (&want.kind, &node.kind) {
                (NodeContent::File(a), NodeContent::File(b))
                    if a != b && !same_but_for_names(path, root, a, b) =>
                {
                    found.push(format!(
                        "{}{BYTES_DIFFER}{}",
                        name(path),
                        first_difference(a, b)
                    ))
                }
                (a, b) if a.name() != b.name() => found.push(format!(
                    "{}: {} with nvcc, {} with warpcc",
                    name(path),
                    a.name(),
                    b.name()
                )),
                (NodeContent::Link(a), NodeContent::Link(b)) if a != b => {
                    found.push(format!("{}: another link target", name(path)));
                }
                _ => {}
            }
            if want.mode != node.mode {
                let (a, b) = (want.mode, node.mode);
                found.push(format!("{}: mode {a:o} with nvcc, {b:o}", name(path)));
            }
            if want.links != node.links {
                let (a, b) = (want.links, node.links);
                found.push(format!("{}: {a} links with nvcc, {b}", name(path)));
            }
        }
        for (path, node) in &got.0 {
            if !self.0.contains_key(path) {
                found.push(format!(
                    "{}: {} that nvcc does not leave",
                    name(path),
                    node.kind.name()
                ));
            }
        }
        found
    }
}

impl TreeNode {
    fn restore(&self, path: &Path, other: Option<&Path>) {
        match &self.kind {
            NodeContent::File(bytes) => {
                if let Some(other) = other {
                    remove(path);
                    _ = fs::hard_link(other, path);
                    return;
                }
                let open = fs::OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(path);
                if let Ok(mut file) = open {
                    _ = file.write_all(bytes);
                }
                _ = fs::set_permissions(path, Permissions::from_mode(self.mode));
                self.set_time(path);
            }
            NodeContent::Link(target) => {
                remove(path);
                _ = symlink(target, path);
            }
            NodeContent::Folder => {
                _ = fs::create_dir_all(path);
                _ = fs::set_permissions(path, Permissions::from_mode(self.mode));
            }
            NodeContent::Other => {}
        }
    }

    fn set_time(&self, path: &Path) {
        if let (Some(time), Ok(file)) = (self.modified, File::open(path)) {
            _ = file.set_times(FileTimes::new().set_modified(time));
        }
    }
}

/// Removes the file or folder at a path, if there is one.
pub fn remove(path: &Path) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    _ = if meta.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
}

/// The first line in which two texts differ, from both.
fn first_difference(want: &[u8], got: &[u8]) -> String {
    let (Ok(want), Ok(got)) = (std::str::from_utf8(want), std::str::from_utf8(got)) else {
        return String::new();
    };
    let mut pairs = want.lines().zip(got.lines());
    let found = pairs.find(|(a, b)| a != b);
    found.map_or(String::new(), |(a, b)| {
        format!(": nvcc `{a}`, warpcc `{b}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_undone() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().join("r");
        fs::create_dir(&root)?;
        fs::write(root.join("a"), "one")?;
        fs::hard_link(root.join("a"), root.join("b"))?;
        symlink("a", root.join("l"))?;
        fs::set_permissions(root.join("a"), Permissions::from_mode(0o600))?;
        let roots = [root.clone()];
        let before = Tree::take(&roots);
        remove(&root.join("a"));
        remove(&root.join("l"));
        fs::write(root.join("l"), "x")?;
        fs::write(root.join("b"), "two")?;
        fs::write(root.join("new"), "")?;
        let now = Tree::take(&roots);
        assert_eq!(before.differences(&now, &root).len(), 6);
        before.put_back(&now);
        let found = before.differences(&Tree::take(&roots), &root);
        assert_eq!(found, Vec::<String>::new());
        Ok(())
    }
}
