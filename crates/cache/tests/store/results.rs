//! Results under keys: each is found while its manifest holds, and a damaged record is a miss.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use warpcc_cache::{
    Digest, DiskStore, InputManifest, InputManifestBuilder, Level, Lookup, LookupMiss, Outcome,
    ProducedFile, StoreError, WorkDir, decode_record,
};
use warpcc_path_map::PathMap;

use crate::{entry, key, store};

pub fn outcome(text: &str) -> Outcome {
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

pub fn manifest(base: &Path, names: &[&str]) -> InputManifest {
    std::thread::sleep(Duration::from_millis(40));
    let mut builder = InputManifestBuilder::new(SystemTime::now()).relative_to(base);
    names.iter().for_each(|name| builder.read(Path::new(name)));
    builder.finish().expect("settled")
}

/// Writes `text` to `a.cu`, and stores a result that was made from it under the key `k`.
fn store_text(store: &DiskStore, base: &Path, text: &str) {
    fs::write(base.join("a.cu"), text).expect("write");
    let seen = manifest(base, &["a.cu"]);
    store
        .store(Level::Direct, &key("k"), &seen, &outcome(text))
        .expect("store");
}

#[test]
fn a_stored_result_is_found_while_its_manifest_holds() {
    let (folder, store) = store();
    let base = folder.path();
    store_text(&store, base, "one");
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
    store_text(&store, base, "two");
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
    store_text(&store, base, "one");
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
    store_text(&store, base, "one");
    let hex = key("l").hex();
    let other = store.root().join(format!("direct-v4/{}/{hex}", &hex[..2]));
    fs::create_dir_all(other.parent().expect("parent")).expect("folder");
    fs::copy(entry(&store, "direct-v4"), other).expect("copy");
    assert!(matches!(
        store.look_up(Level::Direct, &key("l"), base),
        Lookup::Miss(LookupMiss::Corrupt)
    ));
}
