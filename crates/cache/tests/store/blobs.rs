//! Blobs: each is given back whole or not at all, and placed over nothing but a plain file.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use warpcc_cache::{Digest, Packing, StoreError};

use crate::{entry, files_below, store};

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
