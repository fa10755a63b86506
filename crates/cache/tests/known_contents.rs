//! Headers that were hashed once are not read again, and a changed one is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::inotify;
use rustix::io::Errno;
use tempfile::TempDir;
use warpcc_cache::{
    ContentHashes, DiskStore, InputManifest, InputManifestBuilder, Options, Signature,
};

const OPTIONS: Options = Options {
    max_size: 0,
    readonly: false,
};

struct Tree {
    folder: TempDir,
    store: DiskStore,
    headers: Vec<PathBuf>,
}

impl Tree {
    /// On a file system whose times are trusted: the temporary folder may be a tmpfs, where nothing is noted.
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let store = DiskStore::open(&folder.path().join("cache"), OPTIONS).expect("open");
        let include = folder.path().join("include");
        fs::create_dir(&include).expect("create");
        let headers = (0..20).map(|n| include.join(format!("{n}.h"))).collect();
        let tree = Self {
            folder,
            store,
            headers,
        };
        tree.headers
            .iter()
            .for_each(|path| fs::write(path, "same size").expect("write"));
        tree
    }

    fn manifest(&self, knowing: bool) -> InputManifest {
        std::thread::sleep(Duration::from_millis(40));
        let mut builder = InputManifestBuilder::new(SystemTime::now());
        self.headers.iter().for_each(|path| builder.read(path));
        let made = match knowing {
            true => builder.finish_knowing(&self.store, None),
            false => builder.finish(),
        };
        made.expect("settled")
    }

    fn notes(&self) -> usize {
        let folders = fs::read_dir(self.store.root().join("notes-v1/headers-3"));
        folders.into_iter().flatten().count()
    }

    fn agree(&self, when: &str) {
        assert!(self.manifest(true) == self.manifest(false), "{when}");
    }
}

/// Gives a file its former times of access and modification.
fn set_modified(path: &Path, to: SystemTime) {
    let file = fs::File::options().write(true).open(path).expect("open");
    file.set_modified(to).expect("set");
}

#[test]
fn a_changed_header_is_read_again() {
    let tree = Tree::new();
    tree.agree("at first");
    assert_eq!(tree.notes(), 1);
    tree.agree("from the note");
    let path = &tree.headers[7];
    let modified = fs::metadata(path).expect("there").modified().expect("time");
    fs::write(path, "SAME SIZE").expect("write");
    set_modified(path, modified);
    tree.agree("written in place, with the old time");
    let other = tree.folder.path().join("other");
    fs::write(&other, "Same Size").expect("write");
    set_modified(&other, modified);
    fs::rename(&other, path).expect("rename");
    tree.agree("another file in its place");
    fs::remove_file(path).expect("remove");
    symlink(&tree.headers[3], path).expect("link");
    tree.agree("a link in its place");
}

#[test]
fn a_known_header_is_not_opened() {
    let tree = Tree::new();
    let all = tree.manifest(true);
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
    let include = tree.folder.path().join("include");
    inotify::add_watch(&watch, &include, inotify::WatchFlags::OPEN).expect("watched");
    let opened = || rustix::io::read(&watch, &mut [0_u8; 4096]);
    assert!(tree.manifest(true) == all);
    assert_eq!(opened(), Err(Errno::AGAIN));
    assert!(tree.manifest(false) == all);
    assert!(opened().is_ok(), "the watch sees nothing");
}

#[test]
fn a_spoiled_note_is_no_note() {
    let tree = Tree::new();
    let all = tree.manifest(true);
    let mut notes = vec![tree.store.root().join("notes-v1/headers-3")];
    while let Some(path) = notes.pop() {
        match fs::read_dir(&path) {
            Ok(inside) => notes.extend(inside.flatten().map(|entry| entry.path())),
            Err(_) => {
                let mut bytes = fs::read(&path).expect("a note");
                *bytes.last_mut().expect("not empty") ^= 1;
                fs::write(&path, bytes).expect("write");
            }
        }
    }
    assert!(tree.manifest(true) == all);
}

/// A store whose programs take longer to hash than a tick of the file clock.
struct Slow<'a>(&'a DiskStore);

impl ContentHashes for Slow<'_> {
    fn recall(&self, signature: &Signature) -> Option<[u8; 32]> {
        std::thread::sleep(Duration::from_millis(100));
        self.0.recall(signature)
    }

    fn remember(&self, signature: &Signature, content: &[u8; 32]) {
        self.0.remember(signature, content);
    }

    fn recall_place(&self, place: &[u8]) -> Vec<u8> {
        self.0.recall_place(place)
    }

    fn remember_place(&self, place: &[u8], files: &[u8]) {
        self.0.remember_place(place, files);
    }
}

#[test]
fn new_files_are_not_noted_however_long_the_others_took() {
    let tree = Tree::new();
    let program = tree.folder.path().join("program");
    let read = || {
        let later = SystemTime::now() + Duration::from_secs(60);
        let mut builder = InputManifestBuilder::new(later);
        let all = tree.headers.iter().chain([&program]);
        all.for_each(|path| builder.read(path));
        let made = builder.finish_knowing(&Slow(&tree.store), None);
        drop(made.expect("settled"));
    };
    let programs = || tree.store.root().join("notes-v1/programs").exists();
    let mut text = b"\x7fELF".to_vec();
    text.resize(1 << 19, 0);
    fs::write(&program, text).expect("write");
    tree.headers
        .iter()
        .for_each(|path| fs::write(path, "same size").expect("write"));
    // In this tick each of them may change once more, behind the reader.
    read();
    assert!(tree.notes() == 0 && !programs());
    read();
    assert!(tree.notes() == 1 && programs());
}
