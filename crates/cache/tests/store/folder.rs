//! The store's folder as a whole: made on demand, collected, read-only or unusable; its counters, and what it remembers of tools.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use warpcc_cache::{
    Digest, DiskStore, Level, Lookup, LookupMiss, OpenError, Options, Packing, StoreError,
};

use crate::results::{manifest, outcome};
use crate::{OPTIONS, entry, files_below, key, store};

#[test]
fn a_missing_record_is_a_miss() {
    let (folder, store) = store();
    let digest = Digest::of_bytes(b"nothing");
    let dest = folder.path().join("dest");
    assert!(!store.get_to(&digest, &dest, false).expect("place"));
    assert!(!dest.exists());
    assert_eq!(store.get_bytes(&digest).expect("get"), None);
    assert!(!store.has(&digest));
    assert!(matches!(
        store.look_up(Level::Direct, &key("k"), Path::new(".")),
        Lookup::Miss(LookupMiss::NoRecord)
    ));
    assert_eq!(store.note("kind", &key("k")), None);
    assert_eq!(store.size().expect("size"), (0, 0));
    // None of that made the folder.
    assert!(!store.root().exists());
}

#[test]
fn collection_evicts_what_was_used_longest_ago() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let limit = 100 * 4096;
    let options = Options {
        max_size: limit,
        ..OPTIONS
    };
    let store = DiskStore::open(folder.path(), options).expect("open");
    let digests: Vec<_> = (0..110u32)
        .map(|i| {
            store
                .put_bytes(&i.to_le_bytes(), Packing::Plain)
                .expect("put")
        })
        .collect();
    assert!(store.needs_gc());
    let path_of = |digest: &Digest| {
        let hex = digest.hex();
        folder
            .path()
            .join(format!("blobs-v1/{}/{hex}-4", &hex[..2]))
    };
    for (i, digest) in digests.iter().enumerate() {
        let hours = Duration::from_secs(3600 * (200 - i as u64));
        let file = fs::File::options()
            .write(true)
            .open(path_of(digest))
            .expect("open");
        file.set_modified(SystemTime::now() - hours)
            .expect("set time");
    }
    // Using the oldest makes it the newest.
    assert!(store.get_bytes(&digests[0]).expect("get").is_some());
    let stale = folder.path().join("tmp/.warpcc-dead");
    fs::write(&stale, "").expect("write");
    let old = SystemTime::now() - Duration::from_secs(7200);
    let file = fs::File::options().write(true).open(&stale).expect("open");
    file.set_modified(old).expect("set time");

    let collected = store.gc(store.gc_target()).expect("collect");
    assert!(collected.ran);
    assert_eq!(collected.removed, 20);
    assert!(store.has(&digests[0]));
    assert!(!store.has(&digests[1]) && !store.has(&digests[20]));
    assert!(store.has(&digests[21]));
    assert!(!stale.exists());
    assert!(!store.needs_gc());
    assert_eq!(store.size().expect("size").0, store.estimated_size());
    store.clear().expect("clear");
    assert_eq!(store.size().expect("size"), (0, 0));
    assert_eq!(store.estimated_size(), 0);
    store.put_bytes(b"again", Packing::Plain).expect("put");
}

#[test]
fn collection_by_age_leaves_what_was_used_since() {
    let (_folder, store) = store();
    let put = |text: &str| {
        store
            .put_bytes(text.as_bytes(), Packing::Plain)
            .expect("put")
    };
    let (old, used, new) = (put("old"), put("used"), put("new"));
    let day = Duration::from_secs(24 * 3600);
    for digest in [&old, &used] {
        let hash = digest.hex();
        let path = files_below(store.root())
            .into_iter()
            .find(|path| path.to_string_lossy().replace('/', "").contains(&hash));
        let path = path.expect("it is stored");
        let file = fs::File::options().write(true).open(path).expect("open");
        file.set_modified(SystemTime::now() - 10 * day)
            .expect("set time");
    }
    assert!(store.get_bytes(&used).expect("get").is_some());
    let since = |age| SystemTime::now() - age;

    let collected = store.gc_unused_since(since(11 * day)).expect("collect");
    assert_eq!((collected.ran, collected.removed), (true, 0));
    let collected = store.gc_unused_since(since(9 * day)).expect("collect");
    assert_eq!(collected.removed, 1);
    assert!(!store.has(&old) && store.has(&used) && store.has(&new));
    assert_eq!(store.size().expect("size").0, store.estimated_size());
}

#[test]
fn read_only_never_writes() {
    let (folder, store) = store();
    let digest = store.put_bytes(b"bytes", Packing::Plain).expect("put");
    fs::write(folder.path().join("a.cu"), "one").expect("write");
    let seen = manifest(folder.path(), &["a.cu"]);
    store
        .store(Level::Direct, &key("k"), &seen, &outcome("one"))
        .expect("store");
    let options = Options {
        readonly: true,
        ..OPTIONS
    };
    let reader = DiskStore::open(store.root(), options).expect("open");
    let before = files_below(store.root());
    let refused = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::ReadOnly)));
    };
    refused(reader.put_bytes(b"x", Packing::Plain).map(drop));
    refused(
        reader
            .put_file(Path::new("/etc/passwd"), Packing::Plain)
            .map(drop),
    );
    refused(reader.put_note("kind", &key("k"), b""));
    refused(reader.store(Level::Direct, &key("k"), &seen, &outcome("one")));
    refused(reader.gc(0).map(drop));
    refused(reader.clear());
    refused(reader.zero_counters());
    assert!(reader.get_bytes(&digest).expect("get").is_some());
    // A touched file would have the record rewritten.
    fs::write(folder.path().join("a.cu"), "one").expect("write");
    std::thread::sleep(Duration::from_millis(40));
    let record = fs::read(entry(&store, "direct-v4")).expect("read");
    let found = reader.look_up(Level::Direct, &key("k"), folder.path());
    assert!(matches!(found, Lookup::Hit(..)));
    assert_eq!(fs::read(entry(&store, "direct-v4")).expect("read"), record);
    fs::write(entry(&store, "blobs-v1"), "spoiled").expect("spoil");
    assert_eq!(reader.get_bytes(&digest).expect("get"), None);
    assert_eq!(files_below(store.root()), before);
    // Counters are about the builds, not about what is kept.
    reader.count(&[("hits", 1)]);
    assert_eq!(store.counters().get("hits"), Some(&1));
}

#[test]
fn an_unusable_folder_is_an_error_with_a_name() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("write");
    assert!(matches!(
        DiskStore::open(&file, OPTIONS),
        Err(OpenError::NotADirectory { .. })
    ));
    // Turned into a file after it was opened.
    let root = folder.path().join("cache");
    let store = DiskStore::open(&root, OPTIONS).expect("open");
    fs::write(&root, "").expect("write");
    let error = store
        .put_bytes(b"x", Packing::Plain)
        .expect_err("no folder");
    assert!(error.to_string().contains("cache"), "{error}");
    assert!(matches!(
        store.look_up(Level::Direct, &key("k"), folder.path()),
        Lookup::Miss(LookupMiss::NoRecord)
    ));
    assert_eq!(store.get_bytes(&Digest::of_bytes(b"x")).expect("get"), None);
    store.count(&[("hits", 1)]);
    assert!(store.counters().is_empty());
}

#[test]
fn a_tools_content_is_remembered_and_follows_the_tool() {
    let (folder, store) = store();
    let tool = folder.path().join("tool");
    let program = |last: u8| {
        let mut bytes = vec![0; 300 << 10];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes.push(last);
        bytes
    };
    let content = || store.tool_content(&tool).expect("content");
    fs::write(&tool, program(1)).expect("write");
    // Too new to be remembered.
    assert_eq!(content(), *blake3::hash(&program(1)).as_bytes());
    assert_eq!(store.size().expect("size").1, 0);
    std::thread::sleep(Duration::from_millis(60));
    for _ in 0..2 {
        assert_eq!(content(), *blake3::hash(&program(1)).as_bytes());
        assert_eq!(store.size().expect("size").1, 1);
    }
    fs::write(&tool, program(2)).expect("write");
    assert_eq!(content(), *blake3::hash(&program(2)).as_bytes());
    // A script is read each time.
    fs::write(&tool, "#!/bin/sh").expect("write");
    assert_eq!(content(), *blake3::hash(b"#!/bin/sh").as_bytes());
    assert!(store.tool_content(&folder.path().join("none")).is_err());
    assert!(store.tool_content(folder.path()).is_err());
}

#[test]
fn counters_add_up_and_go_back_to_nothing() {
    let (_folder, store) = store();
    store.count(&[("hits", 1), ("misses", 2)]);
    store.count(&[("hits", 4)]);
    assert_eq!(store.counters()["hits"], 5);
    assert_eq!(store.counters()["misses"], 2);
    store.zero_counters().expect("zero");
    assert!(store.counters().is_empty());
}
