//! Headers that were hashed once are not read again, and a changed one is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::inotify;
use rustix::io::Errno;
use tempfile::TempDir;
use warpcc_cache::{DiskStore, InputManifest, InputManifestBuilder, Options};

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
        let folders = fs::read_dir(self.store.root().join("notes-v1/headers"));
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
    let mut notes = vec![tree.store.root().join("notes-v1/headers")];
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
