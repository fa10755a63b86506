//! The store gives back what it was given, or nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use warpcc_cache::{
    Digest, DiskStore, Hashing, InputManifest, InputManifestBuilder, Key, KeySink, Level, Lookup,
    LookupMiss, OpenError, Options, Outcome, Packing, ProducedFile, StoreError, WorkDir,
    decode_record,
};
use warpcc_path_map::PathMap;

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

fn outcome(text: &str) -> Outcome {
    Outcome {
        outputs: vec![ProducedFile {
            role: "object".into(),
            digest: Digest::of_bytes(text.as_bytes()),
            executable: false,
        }],
        stdout: text.into(),
        stderr: b"warning".to_vec(),
        extra: vec![0, 255],
        micros: 12,
    }
}

fn manifest(base: &Path, names: &[&str]) -> InputManifest {
    std::thread::sleep(Duration::from_millis(40));
    let mut builder = InputManifestBuilder::new(SystemTime::now()).relative_to(base);
    names.iter().for_each(|name| builder.read(Path::new(name)));
    builder.finish().expect("settled")
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

/// Compressible and not, empty, and larger than what passes in one piece.
fn samples() -> Vec<Vec<u8>> {
    let mut state = 1u32;
    let mut noise = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect()
    };
    let large = [noise(9 << 20), vec![7; 9 << 20]].concat();
    vec![
        Vec::new(),
        b"x".to_vec(),
        vec![b'a'; 100_000],
        noise(50_000),
        large,
    ]
}

#[test]
fn blobs_go_round() {
    for packing in [Packing::Plain, Packing::Zstd] {
        let (folder, store) = store();
        for (i, bytes) in samples().iter().enumerate() {
            let source = folder.path().join("source");
            fs::write(&source, bytes).expect("write");
            let digest = match i % 2 {
                0 => store.put_file(&source, packing).expect("put"),
                _ => store.put_bytes(bytes, packing).expect("put"),
            };
            assert_eq!(digest, Digest::of_bytes(bytes));
            assert_eq!(store.put_bytes(bytes, packing).expect("again"), digest);
            assert!(store.has(&digest));
            assert_eq!(store.get_bytes(&digest).expect("get").as_ref(), Some(bytes));
            let dest = folder.path().join("dest");
            assert!(store.get_to(&digest, &dest, true).expect("place"));
            assert!(&fs::read(&dest).expect("read") == bytes);
            let mode = fs::metadata(&dest).expect("stat").permissions().mode();
            assert_eq!(mode & 0o100, 0o100);
        }
        assert_eq!(store.verify().expect("verify").bad, Vec::<PathBuf>::new());
        assert!(files_below(&store.root().join("tmp")).is_empty());
        let (bytes, entries) = store.size().expect("size");
        assert_eq!(entries, 5);
        assert_eq!(bytes, store.estimated_size());
    }
}

#[test]
fn a_plain_payload_starts_its_file() {
    let (_folder, store) = store();
    store.put_bytes(b"plain", Packing::Plain).expect("put");
    let file = fs::read(entry(&store, "blobs-v1")).expect("read");
    assert!(file.starts_with(b"plain"));
}

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
fn a_spoiled_blob_is_a_miss_wherever_it_is_spoiled() {
    for packing in [Packing::Plain, Packing::Zstd] {
        let (folder, store) = store();
        let bytes = b"some bytes, bytes, bytes, bytes, bytes, bytes, bytes".repeat(3);
        let digest = store.put_bytes(&bytes, packing).expect("put");
        let path = entry(&store, "blobs-v1");
        let good = fs::read(&path).expect("read");
        let dest = folder.path().join("dest");
        let miss = |bad: &[u8], what: &str| {
            fs::write(&path, bad).expect("spoil");
            assert!(
                !store.get_to(&digest, &dest, false).expect("place"),
                "{what}"
            );
            assert!(!dest.exists(), "{what}");
            assert!(!path.exists(), "{what}");
            fs::write(&path, bad).expect("spoil");
            assert_eq!(store.get_bytes(&digest).expect("get"), None, "{what}");
            fs::write(&path, bad).expect("spoil");
            assert_eq!(
                store.verify().expect("verify").bad,
                std::slice::from_ref(&path),
                "{what}"
            );
        };
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            miss(&bad, &format!("{packing:?} flipped at {at}"));
        }
        for length in 0..good.len() {
            miss(&good[..length], &format!("{packing:?} cut at {length}"));
        }
        miss(&[good.as_slice(), b"x"].concat(), "longer");
        // It is stored anew, and no private file is left next to the target.
        store.put_bytes(&bytes, packing).expect("put");
        assert!(store.get_to(&digest, &dest, false).expect("place"));
        assert!(store.counters()["blob_corrupt"] > 0);
        assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 2);
    }
}

#[test]
fn a_blob_under_another_name_is_a_miss() {
    let (_folder, store) = store();
    let one = store.put_bytes(b"one", Packing::Plain).expect("put");
    let path = entry(&store, "blobs-v1");
    let two = Digest::of_bytes(b"two");
    let hex = two.hex();
    let other = store.root().join(format!("blobs-v1/{}/{hex}-3", &hex[..2]));
    fs::create_dir_all(other.parent().expect("parent")).expect("folder");
    fs::copy(&path, &other).expect("copy");
    assert_eq!(store.get_bytes(&two).expect("get"), None);
    assert_eq!(
        store.get_bytes(&one).expect("get").as_deref(),
        Some(&b"one"[..])
    );
}

#[test]
fn only_a_plain_file_of_ours_is_replaced() {
    let (folder, store) = store();
    let digest = store.put_bytes(b"bytes", Packing::Plain).expect("put");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain"), "before").expect("write");
    assert!(store.get_to(&digest, &at("plain"), false).expect("place"));
    assert_eq!(fs::read(at("plain")).expect("read"), b"bytes");

    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, at(name)).expect("link");
    };
    fs::write(at("target"), "before").expect("write");
    link("target", "to-file");
    link("nothing", "to-nothing");
    link("/dev/null", "to-null");
    fs::write(at("one"), "before").expect("write");
    fs::hard_link(at("one"), at("two")).expect("link");
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    fs::create_dir(at("folder")).expect("folder");
    let names = ["to-file", "to-nothing", "to-null", "one", "pipe", "folder"];
    for name in names.into_iter().chain(["/dev/null"]) {
        let before = fs::symlink_metadata(at(name)).expect("stat");
        let error = store.get_to(&digest, &at(name), false);
        assert!(matches!(error, Err(StoreError::Io { .. })), "{name}");
        let staged = store.stage(&digest, &at(name), false).expect("stage");
        assert!(staged.is_none(), "{name}");
        let after = fs::symlink_metadata(at(name)).expect("stat");
        let whole = |found: &fs::Metadata| (found.dev(), found.ino(), found.mode(), found.nlink());
        assert_eq!(whole(&before), whole(&after), "{name}");
    }
    assert_eq!(fs::read(at("target")).expect("read"), b"before");
    assert_eq!(fs::read(at("one")).expect("read"), b"before");
    assert!(!at("nothing").exists());

    // Turned into a link between the two steps.
    let staged = store.stage(&digest, &at("late"), false).expect("stage");
    link("target", "late");
    assert!(staged.expect("staged").commit().is_err());
    assert_eq!(fs::read(at("target")).expect("read"), b"before");

    let error = store.get_to(&digest, &at("no/folder"), false);
    assert!(matches!(error, Err(StoreError::Io { .. })));
}

#[test]
fn a_stored_result_is_found_while_its_manifest_holds() {
    let (folder, store) = store();
    let base = folder.path();
    fs::write(base.join("a.cu"), "one").expect("write");
    let seen = manifest(base, &["a.cu"]);
    store
        .store(Level::Direct, &key("k"), &seen, &outcome("one"))
        .expect("store");
    let look = || store.look_up(Level::Direct, &key("k"), base);
    assert!(matches!(look(), Lookup::Hit(found, _) if found == outcome("one")));
    assert!(matches!(
        store.look_up(Level::Steps, &key("k"), base),
        Lookup::Miss(LookupMiss::NoRecord)
    ));

    fs::write(base.join("a.cu"), "two").expect("write");
    match look() {
        Lookup::Miss(LookupMiss::Differs(what)) => assert_eq!(what[0].path(), Path::new("a.cu")),
        other => panic!("{other:?}"),
    }
    let seen = manifest(base, &["a.cu"]);
    store
        .store(Level::Direct, &key("k"), &seen, &outcome("two"))
        .expect("store");
    assert!(matches!(look(), Lookup::Hit(found, _) if found == outcome("two")));
    // Back on the old branch: found again, and moved to the front with its new signature.
    fs::write(base.join("a.cu"), "one").expect("write");
    std::thread::sleep(Duration::from_millis(40));
    assert!(matches!(look(), Lookup::Hit(found, _) if found == outcome("one")));
    let record = fs::read(entry(&store, "direct-v4")).expect("read");
    let variants = decode_record(&record).expect("sound");
    assert_eq!(variants.len(), 2);
    assert_eq!(variants[0].outcome, outcome("one"));
    assert!(matches!(
        variants[0].manifest.check(base),
        warpcc_cache::ManifestVerdict::Holds
    ));
    let all = store
        .differences(Level::Direct, &key("k"), WorkDir::plain(base), &|_| Ok(()))
        .expect("read");
    assert_eq!((all[0].1.len(), all[1].1.len()), (0, 1));
}

#[test]
fn a_result_below_a_mapped_folder_is_found_in_its_clones() {
    let (folder, store) = store();
    let top = folder.path().canonicalize().expect("a folder");
    let clones = ["one", "another"].map(|name| top.join(name));
    for clone in &clones {
        fs::create_dir(clone).expect("a folder");
        fs::write(clone.join("a.cu"), "text").expect("write");
    }
    let maps = clones
        .each_ref()
        .map(|clone| PathMap::new([("1", clone.to_str().expect("text"))]));
    let seen = manifest(
        &clones[0],
        &[clones[0].join("a.cu").to_str().expect("text")],
    );
    let key = key("k");
    store
        .store_mapped(Level::Direct, &key, &maps[0], &seen, &outcome("one"))
        .expect("store");
    let look = |clone: usize, path_map: &PathMap| {
        let directory = &clones[clone];
        let at = WorkDir {
            directory,
            path_map,
        };
        store.look_up_if(Level::Direct, &key, at, &|_| Ok(()), |_| {})
    };
    for clone in [0, 1] {
        match look(clone, &maps[clone]) {
            Lookup::Hit(_, seen) => {
                let paths: Vec<_> = seen.files().map(|file| file.path.to_owned()).collect();
                assert_eq!(paths, [clones[clone].join("a.cu")]);
            }
            other => panic!("{other:?}"),
        }
    }
    let record = fs::read(entry(&store, "direct-v4")).expect("read");
    let kept = &decode_record(&record).expect("sound")[0].manifest;
    let paths: Vec<_> = kept.files().map(|file| file.path.to_owned()).collect();
    assert_eq!(paths, [Path::new("/warpcc-base/1/a.cu")]);
    // A fixed name that nothing has here leads nowhere.
    let elsewhere = PathMap::new([("2", "/x")]);
    assert!(matches!(look(0, &elsewhere), Lookup::Miss(_)));
    fs::write(clones[1].join("a.cu"), "other text").expect("write");
    assert!(matches!(look(1, &maps[1]), Lookup::Miss(_)));
}

#[test]
fn a_key_keeps_the_latest_few_results() {
    let (folder, store) = store();
    let base = folder.path();
    for i in 0..9 {
        fs::write(base.join("a.cu"), i.to_string()).expect("write");
        let seen = manifest(base, &["a.cu"]);
        // Storing the same twice keeps one.
        for _ in 0..2 {
            store
                .store(Level::Steps, &key("k"), &seen, &outcome(&i.to_string()))
                .expect("store");
        }
    }
    let record = fs::read(entry(&store, "steps-v4")).expect("read");
    let kept: Vec<_> = decode_record(&record).expect("sound");
    let kept: Vec<_> = kept.iter().map(|v| v.outcome.stdout.as_slice()).collect();
    assert_eq!(kept, [b"8", b"7", b"6", b"5", b"4", b"3"]);
}

#[test]
fn a_spoiled_record_or_note_is_a_miss() {
    let (folder, store) = store();
    let base = folder.path();
    fs::write(base.join("a.cu"), "one").expect("write");
    let seen = manifest(base, &["a.cu"]);
    store
        .store(Level::Direct, &key("k"), &seen, &outcome("one"))
        .expect("store");
    let path = entry(&store, "direct-v4");
    let good = fs::read(&path).expect("read");
    let spoiled = (0..good.len()).map(|at| {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        bad
    });
    let cut = (0..good.len()).map(|length| good[..length].to_vec());
    for bad in spoiled.chain(cut) {
        fs::write(&path, &bad).expect("spoil");
        match store.look_up(Level::Direct, &key("k"), base) {
            Lookup::Miss(LookupMiss::Corrupt) => assert!(!path.exists()),
            // Cut exactly before the first result.
            Lookup::Miss(LookupMiss::NoRecord) => assert_eq!(bad.len(), 48),
            other => panic!("{other:?}"),
        }
    }

    store.put_note("kind", &key("k"), b"value").expect("note");
    assert_eq!(
        store.note("kind", &key("k")).as_deref(),
        Some(&b"value"[..])
    );
    assert_eq!(store.note("other", &key("k")), None);
    let path = entry(&store, "notes-v1");
    let good = fs::read(&path).expect("read");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&path, &bad).expect("spoil");
        assert_eq!(store.note("kind", &key("k")), None, "flipped at {at}");
    }
    assert!(matches!(
        store.put_note("../up", &key("k"), b""),
        Err(StoreError::Kind(_))
    ));
}

#[test]
fn a_record_under_another_key_is_a_miss() {
    let (folder, store) = store();
    let base = folder.path();
    fs::write(base.join("a.cu"), "one").expect("write");
    let seen = manifest(base, &["a.cu"]);
    store
        .store(Level::Direct, &key("k"), &seen, &outcome("one"))
        .expect("store");
    let hex = key("l").hex();
    let other = store.root().join(format!("direct-v4/{}/{hex}", &hex[..2]));
    fs::create_dir_all(other.parent().expect("parent")).expect("folder");
    fs::copy(entry(&store, "direct-v4"), other).expect("copy");
    assert!(matches!(
        store.look_up(Level::Direct, &key("l"), base),
        Lookup::Miss(LookupMiss::Corrupt)
    ));
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
