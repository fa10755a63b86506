//! Many writers and readers at once, and writers that are killed: never a wrong byte, never a broken entry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use warpcc_cache::{
    Digest, DiskStore, Hashing, InputManifest, InputManifestBuilder, Key, KeySink, Level, Lookup,
    LookupMiss, Options, Outcome, Packing, ProducedFile,
};

const OPTIONS: Options = Options {
    max_size: 0,
    readonly: false,
};
/// Where a child of this test writes; nothing to do without.
const ROOT: &str = "WARPCC_CACHE_TEST_ROOT";

fn key(number: u64) -> Key {
    let mut hashing = Hashing::new("test");
    hashing.part("number", &number.to_le_bytes());
    hashing.finish()
}

fn content(number: u64) -> Vec<u8> {
    number
        .to_le_bytes()
        .repeat(1 + (number as usize * 37) % 20_000)
}

fn manifest() -> InputManifest {
    InputManifestBuilder::new(SystemTime::now())
        .finish()
        .expect("nothing was read")
}

/// Stores a task's blob, record and note.
fn write(store: &DiskStore, number: u64) {
    let packing = if number.is_multiple_of(2) {
        Packing::Plain
    } else {
        Packing::Zstd
    };
    let digest = store.put_bytes(&content(number), packing).expect("put");
    let outcome = Outcome {
        outputs: vec![ProducedFile {
            role: "object".into(),
            digest,
            executable: false,
        }],
        ..Outcome::default()
    };
    store
        .store(Level::Steps, &key(number), &manifest(), &outcome)
        .expect("store");
    store
        .put_note("test", &key(number), &number.to_le_bytes())
        .expect("note");
    store.count(&[("written", 1)]);
}

/// Whatever is found must be right.
fn read(store: &DiskStore, number: u64, dest: &Path) -> bool {
    let found = match store.look_up(Level::Steps, &key(number), Path::new("/")) {
        Lookup::Hit(outcome, _) => {
            let digest = outcome.outputs[0].digest;
            assert_eq!(digest, Digest::of_bytes(&content(number)));
            let placed = store.get_to(&digest, dest, false).expect("place");
            if placed {
                assert!(fs::read(dest).expect("read") == content(number));
            }
            placed
        }
        Lookup::Miss(LookupMiss::NoRecord) => false,
        Lookup::Miss(why) => panic!("{why:?}"),
    };
    if let Some(note) = store.note("test", &key(number)) {
        assert_eq!(note, number.to_le_bytes());
    }
    found
}

#[test]
fn many_threads_with_the_same_keys() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = folder.path().join("cache");
    std::thread::scope(|scope| {
        for thread in 0..64u64 {
            let (root, folder) = (&root, folder.path());
            scope.spawn(move || {
                let store = DiskStore::open(root, OPTIONS).expect("open");
                let dest = folder.join(format!("dest-{thread}"));
                for i in 0..12 {
                    let number = (thread + i) % 16;
                    write(&store, number);
                    read(&store, (number + 5) % 16, &dest);
                }
            });
        }
    });
    let store = DiskStore::open(&root, OPTIONS).expect("open");
    let dest = folder.path().join("dest");
    assert!((0..16).all(|number| read(&store, number, &dest)));
    assert!(store.verify().expect("verify").bad.is_empty());
    assert_eq!(store.counters()["written"], 64 * 12);
    assert_eq!(store.counters().get("blob_corrupt"), None);
    assert_eq!(store.counters().get("record_corrupt"), None);
}

#[test]
fn collection_beside_readers_and_writers() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = folder.path().join("cache");
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (root, folder) = (&root, folder.path());
            scope.spawn(move || {
                let store = DiskStore::open(root, OPTIONS).expect("open");
                let dest = folder.join(format!("dest-{thread}"));
                for number in 0..60 {
                    match thread {
                        0 => drop(store.gc(20_000).expect("collect")),
                        1 if number % 10 == 0 => store.clear().expect("clear"),
                        1 => {}
                        _ => {
                            write(&store, number % 8);
                            read(&store, number % 8, &dest);
                        }
                    }
                }
            });
        }
    });
    let store = DiskStore::open(&root, OPTIONS).expect("open");
    assert!(store.verify().expect("verify").bad.is_empty());
}

fn child(test: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["--ignored", "--exact", test]).env(ROOT, root);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn root_of_child() -> Option<PathBuf> {
    std::env::var_os(ROOT).map(PathBuf::from)
}

#[test]
#[ignore = "the child of writers_that_are_killed_leave_no_bad_entry"]
fn child_writes_until_killed() {
    let Some(root) = root_of_child() else { return };
    let store = DiskStore::open(&root, OPTIONS).expect("open");
    for number in 0.. {
        write(&store, number % 50);
        if number % 10 == 9 {
            // Makes everything new again, so that there is something to interrupt.
            store.clear().expect("clear");
        }
    }
}

#[test]
fn writers_that_are_killed_leave_no_bad_entry() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = folder.path().join("cache");
    let store = DiskStore::open(&root, OPTIONS).expect("open");
    let dest = folder.path().join("dest");
    for round in 0..30u64 {
        let mut writer = child("child_writes_until_killed", &root)
            .spawn()
            .expect("child");
        std::thread::sleep(Duration::from_micros(5_000 + round * 7_919 % 20_000));
        writer.kill().expect("kill");
        writer.wait().expect("wait");
        let report = store.verify().expect("verify");
        assert!(report.bad.is_empty(), "{:?}", report.bad);
        for number in 0..50 {
            read(&store, number, &dest);
        }
    }
    // They did write.
    assert!(store.counters()["written"] > 0);
    assert_eq!(store.counters().get("blob_corrupt"), None);
}

#[test]
#[ignore = "the child of counters_of_many_processes_add_up"]
fn child_counts() {
    let Some(root) = root_of_child() else { return };
    let store = DiskStore::open(&root, OPTIONS).expect("open");
    // Long names, so that the log is folded again and again.
    let name = "n".repeat(2000);
    for _ in 0..400 {
        store.count(&[("hits", 1), (&name, 1)]);
    }
}

#[test]
fn counters_of_many_processes_add_up() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let children: Vec<_> = (0..8)
        .map(|_| child("child_counts", folder.path()).spawn().expect("child"))
        .collect();
    for mut child in children {
        assert!(child.wait().expect("wait").success());
    }
    let store = DiskStore::open(folder.path(), OPTIONS).expect("open");
    assert_eq!(store.counters()["hits"], 3200);
    let log = fs::metadata(folder.path().join("stats-v1.log")).expect("stat");
    assert!(log.len() < 8 * 400 * 2000, "it was folded");
}
