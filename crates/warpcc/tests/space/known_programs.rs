//! What warpcc notes about the programs of a small toolkit, made once and put into the cache of each test: a new cache would
//! read 300 MB of programs before its first compile, as long as the compile itself takes.
//!
//! A note says what the content of a program is, by the program's signature. Of calls and steps nothing is copied. Tests with
//! a toolkit's own headers start with an empty cache.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use warpcc_testkit::folders::copy_tree;

use super::{Program, TestSpace, is_small, make_dir, remove_tree};

/// The folder of notes in a cache, and the kinds that are about programs.
const NOTES: &str = "notes-v1";
const KINDS: [&str; 2] = ["programs", "known-"];

/// Commands that start every program of the toolkit, and of the host compilers that many tests use.
const COMMANDS: [&str; 2] = [
    "-arch=sm_80 -rdc=true case.cu -o program",
    "-arch=sm_80 -c case.cu -o case.o -ccbin clang++-14",
];

/// Puts the notes into the cache of a space whose toolkit is small.
pub fn put_into(space: &TestSpace) {
    if !is_small(&space.toolkit) {
        return;
    }
    let made = made_by(space, &TestSpace::warpcc());
    if !made.exists() {
        make(space, &made);
    }
    let cache = space.cache().join(NOTES);
    copy_tree(&made, &cache).unwrap_or_else(|e| panic!("{}: {e}", cache.display()));
}

/// Where the notes of this program are: another one may note other things.
fn made_by(space: &TestSpace, warpcc: &Path) -> PathBuf {
    let metadata = fs::metadata(warpcc).unwrap_or_else(|e| panic!("{}: {e}", warpcc.display()));
    let mut hasher = DefaultHasher::new();
    (warpcc, metadata.len(), metadata.modified().ok(), COMMANDS).hash(&mut hasher);
    let name = format!("known-programs-{:016x}", hasher.finish());
    space.toolkit.top().join(name)
}

/// Compiles with an empty cache, and takes the notes from it. Several tests may do so at once; each uses the first that is done.
fn make(space: &TestSpace, made: &Path) {
    let own = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let own = own.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let empty =
        TestSpace::with_empty_cache(&format!("known-programs-{own}"), space.toolkit.clone());
    empty.write(
        "case.cu",
        "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n",
    );
    for line in COMMANDS {
        // Where there is no clang, tests with it are skipped, too.
        let said = empty.run(&Program::Launcher, &empty.words(line));
        let is_clangs = line.contains("clang");
        assert!(
            said.code == 0 || is_clangs,
            "{line}: {}",
            said.stderr_text()
        );
    }
    let new = made.with_extension(own);
    make_dir(&new);
    let notes = fs::read_dir(empty.cache().join(NOTES))
        .into_iter()
        .flatten();
    for kind in notes.flatten() {
        let name = kind.file_name();
        if KINDS
            .iter()
            .any(|first| name.to_string_lossy().starts_with(first))
        {
            let result = copy_tree(&kind.path(), &new.join(&name));
            result.unwrap_or_else(|e| panic!("{}: {e}", kind.path().display()));
        }
    }
    if fs::rename(&new, made).is_err() {
        // Another test was first.
        remove_tree(&new);
    }
}
