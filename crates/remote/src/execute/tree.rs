//! An input root: files by their paths, as `Directory` messages that name each other by digest.

use std::collections::BTreeMap;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use prost::Message;
use warpcc_cache::Digest;

use crate::grpc::to_wire;

/// A file of the input root.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Relative to the root, with single slashes, without `.` and `..`.
    pub path: String,
    /// Its content.
    pub digest: Digest,
    /// Whether it is a program.
    pub executable: bool,
}

/// The folders of an input root.
#[derive(Debug)]
pub struct Tree {
    /// The root's digest.
    pub root: Digest,
    /// Every folder, encoded. Equal folders occur once.
    pub folders: BTreeMap<Digest, Vec<u8>>,
}

#[derive(Default)]
struct Folder<'a> {
    files: BTreeMap<&'a str, &'a Leaf>,
    folders: BTreeMap<&'a str, Folder<'a>>,
}

impl Tree {
    /// The tree of `leaves`. `None` if a path is invalid, occurs twice, or is both a file and a folder.
    pub fn new(leaves: &[Leaf]) -> Option<Self> {
        let mut root = Folder::default();
        for leaf in leaves {
            let mut at = &mut root;
            let mut parts = leaf.path.split('/').peekable();
            while let Some(part) = parts.next() {
                if matches!(part, "" | "." | "..") {
                    return None;
                }
                if parts.peek().is_some() {
                    if at.files.contains_key(part) {
                        return None;
                    }
                    at = at.folders.entry(part).or_default();
                } else if at.folders.contains_key(part) || at.files.insert(part, leaf).is_some() {
                    return None;
                }
            }
        }
        let mut folders = BTreeMap::new();
        let root = encode(&root, &mut folders);
        Some(Self { root, folders })
    }
}

/// Sorted by name, as the protocol wants it: equal folders then have equal digests.
fn encode(folder: &Folder<'_>, all: &mut BTreeMap<Digest, Vec<u8>>) -> Digest {
    let files = folder.files.iter().map(|(name, leaf)| re::FileNode {
        name: (*name).to_owned(),
        digest: Some(to_wire(&leaf.digest)),
        is_executable: leaf.executable,
        node_properties: None,
    });
    let folders = folder
        .folders
        .iter()
        .map(|(name, below)| re::DirectoryNode {
            name: (*name).to_owned(),
            digest: Some(to_wire(&encode(below, all))),
        });
    let message = re::Directory {
        directories: folders.collect(),
        files: files.collect(),
        ..re::Directory::default()
    };
    let bytes = message.encode_to_vec();
    let digest = Digest::of_bytes(&bytes);
    all.insert(digest, bytes);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(path: &str) -> Leaf {
        Leaf {
            path: path.to_owned(),
            digest: Digest::of_bytes(b"x"),
            executable: false,
        }
    }

    #[test]
    fn the_order_of_files_does_not_matter_and_their_names_do() {
        let tree = |paths: &[&str]| {
            let leaves: Vec<_> = paths.iter().map(|p| leaf(p)).collect();
            Tree::new(&leaves).map(|tree| (tree.root, tree.folders.len()))
        };
        let one = tree(&["b/c", "a", "b/d"]);
        assert_eq!(one, tree(&["b/d", "b/c", "a"]));
        assert_eq!(one.map(|(_, folders)| folders), Some(2));
        assert_ne!(one, tree(&["b/c", "a", "b/e"]));
        // Two equal folders are one message.
        assert_eq!(tree(&["x/f", "y/f"]).map(|(_, folders)| folders), Some(2));
        for wrong in [
            &["a", "a"][..],
            &["a", "a/b"],
            &["a/b", "a"],
            &["/a"],
            &["../a"],
            &["a//b"],
        ] {
            assert!(tree(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn the_empty_root_is_the_empty_message() {
        let tree = Tree::new(&[]).expect("a tree");
        assert_eq!(tree.root, Digest::of_bytes(b""));
    }
}
