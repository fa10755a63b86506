//! Entries as this version writes them, kept in `versions/`: a change of a format that leaves its version as it was fails here.
//!
//! Who raises a version writes the new files with `WARPCC_VERSIONS=write`, and says in `src/versions.rs` what happens to
//! the old ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::{
    Digest, DiskStore, Hashing, InputManifest, InputManifestBuilder, Key, KeySink, Level, Lookup,
    Options, Outcome, Packing, ProducedFile, RECORD_VERSION, Variant, decode_record_of,
    encode_record,
};

fn key() -> Key {
    let mut hashing = Hashing::new("kept");
    hashing.part("name", b"value");
    hashing.finish()
}

fn outcome(bytes: &[u8]) -> Outcome {
    Outcome {
        outputs: vec![ProducedFile {
            role: "object".into(),
            digest: Digest::of_bytes(bytes),
            executable: true,
        }],
        stdout: b"out".to_vec(),
        stderr: b"err".to_vec(),
        extra: vec![0, 255],
        micros: 12,
    }
}

/// Compressible, and large enough to be packed.
fn bytes() -> Vec<u8> {
    b"the bytes of a result; ".repeat(2000)
}

fn kept(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions");
    folder.join(name)
}

/// The file that is kept, or what was written now where that is asked for.
fn kept_or_written(name: &str, now: &[u8]) -> Vec<u8> {
    if std::env::var_os("WARPCC_VERSIONS").is_some_and(|v| v == "write") {
        fs::create_dir_all(kept("")).expect("a folder");
        fs::write(kept(name), now).expect("write");
    }
    fs::read(kept(name)).expect("WARPCC_VERSIONS=write makes it")
}

/// A run that read a file, missed another one and asked for a folder without links, on a machine of which nothing is kept.
fn manifest(base: &Path) -> InputManifest {
    fs::create_dir(base.join("inc")).expect("a folder");
    fs::write(base.join("a.cu"), "source").expect("write");
    fs::write(base.join("inc/a.h"), "header").expect("write");
    let started = SystemTime::now() + std::time::Duration::from_secs(2);
    let mut builder = InputManifestBuilder::new(started).relative_to(base);
    builder.read(Path::new("a.cu"));
    builder.read(Path::new("inc/a.h"));
    builder.absent(Path::new("inc/b.h"));
    builder.finish().expect("settled").without_signatures()
}

#[test]
fn a_record_is_what_it_was_when_its_version_was_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let variant = Variant {
        manifest: manifest(folder.path()),
        outcome: outcome(&bytes()),
    };
    let now = encode_record(&key(), std::slice::from_ref(&variant)).expect("a record");
    let name = format!("record-v{RECORD_VERSION}");
    let kept = kept_or_written(&name, &now);
    assert_eq!(
        now, kept,
        "the format has changed: raise RECORDS in src/versions.rs"
    );
    let read = decode_record_of(&kept, &key()).expect("a sound record");
    assert_eq!(read, [variant]);
    assert!(read[0].manifest.adopted(folder.path(), None).is_some());
}

#[test]
fn a_cache_of_this_version_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        max_size: 0,
        readonly: false,
    };
    let open = |name: &str| DiskStore::open(&folder.path().join(name), options).expect("open");
    let (made, again) = (open("made"), open("again"));
    let outcome = outcome(&bytes());
    let nothing = InputManifest::default();
    made.put_bytes(&bytes(), Packing::Zstd).expect("put");
    made.store(Level::Steps, &key(), &nothing, &outcome)
        .expect("store");
    made.put_note("kind", &key(), b"value").expect("note");
    let hex = key().hex();
    let digest = Digest::of_bytes(&bytes());
    let files = [
        (
            format!("steps-v{RECORD_VERSION}/{}/{hex}", &hex[..2]),
            "step-v4",
        ),
        (
            format!(
                "blobs-v1/{}/{}-{}",
                &digest.hex()[..2],
                digest.hex(),
                digest.size
            ),
            "blob-v1",
        ),
        (format!("notes-v1/kind/{}/{hex}", &hex[..2]), "note-v1"),
    ];
    for (path, name) in &files {
        let now = fs::read(made.root().join(path)).expect(path);
        let kept = kept_or_written(name, &now);
        // zstd may pack better one day, and reads what it packed before.
        assert!(
            now == kept || *name == "blob-v1",
            "{name} has changed: raise its version"
        );
        let to = again.root().join(path);
        fs::create_dir_all(to.parent().expect("a parent")).expect("a folder");
        fs::write(to, kept).expect("write");
    }
    match again.look_up(Level::Steps, &key(), Path::new("/")) {
        Lookup::Hit(found, _) => assert_eq!(found, outcome),
        other => panic!("{other:?}"),
    }
    let blob = again.get_bytes(&digest).expect("reads");
    assert_eq!(blob.as_deref(), Some(&bytes()[..]));
    assert_eq!(again.note("kind", &key()).as_deref(), Some(&b"value"[..]));
}
