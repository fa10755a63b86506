//! The store gives back what it was given, or nothing.

mod blobs;
mod folder;
mod results;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warpcc_cache::{DiskStore, Hashing, Key, KeySink, Options};

const OPTIONS: Options = Options {
    max_size: 0,
    readonly: false,
};

fn store() -> (TempDir, DiskStore) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = DiskStore::open(&folder.path().join("cache"), OPTIONS).expect("open");
    (folder, store)
}

fn key(name: &str) -> Key {
    let mut hashing = Hashing::new("test");
    hashing.part("name", name.as_bytes());
    hashing.finish()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(files_below(&path)),
            path => all.push(path),
        }
    }
    all
}

fn entry(store: &DiskStore, kind: &str) -> PathBuf {
    let mut all = files_below(&store.root().join(kind));
    assert_eq!(all.len(), 1, "{kind}");
    all.remove(0)
}
