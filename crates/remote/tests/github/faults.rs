//! Tests a service that refuses, forgets, lies and fails: misses and warnings, and the next job mends it.

use std::fs;

use serde_json::json;

use crate::Repository;

#[test]
fn a_storm_of_429_ends_and_says_so() {
    let repository = Repository::new();
    repository.service.set(&json!({ "limit": 0 }));
    // The warning comes while uploads are paused, however slow the machine.
    let job = repository.job_with("job", "|retry-after=60");
    assert!(!job.finds(0));
    repository.build(&job, 0..20);
    let report = job.upload();
    assert_eq!((report.uploaded, report.waiting), (0, 20));
    assert!(
        report.why.as_deref().is_some_and(|why| why.contains("429")),
        "{report:?}"
    );
    assert_eq!(job.count("remote.rate_limited"), 20);
    let counts = repository.service.counts();
    assert!(counts["limited"] <= 5, "{counts:?}");
    // Looking up goes on.
    assert!(!job.finds(1000));
    let warnings = job.warnings.lock().expect("no panics").clone();
    assert!(
        warnings.len() == 1 && warnings[0].contains("uploads to the shared cache are paused"),
        "{warnings:?}"
    );
    // A server that wants hours gets no second request.
    repository.service.set(&json!({ "retry_after": 7200 }));
    assert_eq!(job.upload().waiting, 20);
    assert_eq!(
        repository.service.counts()["limited"],
        counts["limited"] + 1
    );
    repository.service.set(&json!({ "limit": 200 }));
    assert_eq!(job.upload().uploaded, 20);
}

#[test]
fn retry_after_is_waited_for() {
    let repository = Repository::new();
    repository
        .service
        .set(&json!({ "limit": 1, "window": 3, "retry_after": 3 }));
    for name in ["one", "two"] {
        let job = repository.job(name);
        repository.build(&job, if name == "one" { 0..1 } else { 1..2 });
        assert_eq!(job.upload().waiting, 0, "{name}");
    }
    assert!(repository.service.counts()["limited"] > 0);
    assert_eq!(repository.job("last").found(0..2).len(), 2);
}

#[test]
fn whatever_fails_is_a_miss_with_one_warning() {
    for fault in [
        json!({ "calls_fail": true }),
        json!({ "blobs_fail": true }),
        json!({ "signed_for": -1 }),
    ] {
        let repository = Repository::new();
        let first = repository.job("first");
        repository.build(&first, 0..3);
        first.upload();
        repository.service.set(&fault);
        let second = repository.job_with("second", "|retry-after=3600");
        assert_eq!(second.found(0..3), [] as [u32; 0], "{fault}");
        let warnings = second.warnings.lock().expect("no panics").clone();
        assert_eq!(warnings.len(), 1, "{fault}: {warnings:?}");
        for secret in ["a-token", "sig="] {
            assert!(!warnings[0].contains(secret), "{warnings:?}");
        }
    }
}

#[test]
fn signed_addresses_that_run_out_are_asked_for_again() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..1000);
    first.upload();
    let second = repository.job("second");
    assert!(second.finds(0));
    let folders = fs::read_dir(second.root.join("bundles-v1")).expect("bundles");
    let folder = folders.flatten().next().expect("one service").path();
    let files = fs::read_dir(folder).expect("files").flatten();
    let is_url = |path: &std::path::PathBuf| path.to_string_lossy().contains("/url-");
    let noted = files
        .map(|file| file.path())
        .find(is_url)
        .expect("an address");
    let url = fs::read_to_string(&noted).expect("an address");
    let (start, _) = url.split_once("until=").expect("a time");
    fs::write(&noted, format!("{start}until=1&sig=secret")).expect("old");
    assert_eq!(second.found(0..1000).len(), 1000, "{:?}", second.warnings);
    assert_eq!(second.count("remote.errors"), 0);
}

#[test]
fn a_server_without_ranges_gives_the_bundle_once() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..300);
    first.upload();
    repository.service.set(&json!({ "ranges": false }));
    let second = repository.job("second");
    assert_eq!(second.found(0..300).len(), 300, "{:?}", second.warnings);
    // And its beginning, which says where the index is.
    assert_eq!(repository.service.counts()["get"], 2);
}

#[test]
fn damaged_bundles_are_misses_and_are_made_anew() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 8] = [
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("empty", Vec::clear),
        ("of another kind", |bytes| bytes[..8].fill(b'x')),
        ("an index that is none", |bytes| {
            let end = bytes.len();
            bytes[end - 40..].fill(7);
        }),
        ("an index of places behind the end", |bytes| {
            lie(bytes, 49, 1 << 28);
        }),
        ("an index of places that no number has", |bytes| {
            lie(bytes, 49, u64::MAX);
        }),
        ("an index of lengths that no disk has", |bytes| {
            lie(bytes, 57, u64::MAX - 5);
        }),
        ("other blobs", |bytes| bytes[32..4000].fill(9)),
    ];
    for (what, damage) in damages {
        let repository = Repository::new();
        let first = repository.job("first");
        repository.build(&first, 0..3);
        first.upload();
        let bundle = &repository.service.blobs()[0];
        let mut bytes = fs::read(bundle).expect("a bundle");
        damage(&mut bytes);
        fs::write(bundle, bytes).expect("damaged");
        let second = repository.job("second");
        assert_eq!(second.found(0..3), [] as [u32; 0], "{what}");
        // It is built, and uploaded although an index says that it is there.
        repository.build(&second, 0..3);
        assert_eq!(second.upload().waiting, 0, "{what}");
        let third = repository.job("third");
        assert_eq!(third.found(0..3).len(), 3, "{what}: {:?}", third.warnings);
    }
}

/// A service that fails once says nothing of a bundle: later jobs have what is in it.
#[test]
fn what_fails_once_is_not_forgotten() {
    // The bundle's beginning, its index, and the part with its results, which the index is in too where that is short.
    for (what, failing, results) in [
        ("the beginning", 1, 0..3),
        ("the index", 2, 0..3),
        ("a part", 3, 0..300),
    ] {
        let repository = Repository::new();
        let first = repository.job("first");
        repository.build(&first, results.clone());
        first.upload();
        let gets = repository.service.counts()["get"];
        let faults = json!({ "failing_gets": [gets + failing] });
        repository.service.set(&faults);
        let second = repository.job("second");
        second.finds(0);
        let gets = repository.service.counts()["get"] - gets;
        assert!(gets >= failing, "{what}: only {gets} requests");
        // It uploads what it has built instead, and something new.
        repository.build(&second, 1000..1001);
        assert_eq!(second.upload().waiting, 0, "{what}");
        let third = repository.job("third");
        let found = third.found(results.clone());
        assert_eq!(
            found.len(),
            results.len(),
            "{what}: {found:?} {:?}",
            third.warnings
        );
        assert!(third.finds(1000), "{what}");
    }
}

#[test]
fn an_evicted_bundle_is_a_miss_and_is_made_anew() {
    let repository = Repository::new();
    for (name, results) in [("first", 0..3), ("second", 3..6)] {
        let job = repository.job(name);
        repository.build(&job, results);
        job.upload();
    }
    // The quota holds one of them.
    let newest = fs::metadata(&repository.service.blobs()[1]).expect("a bundle");
    repository
        .service
        .set(&json!({ "quota": newest.len() * 5 / 2 }));
    let third = repository.job("third");
    repository.build(&third, 6..9);
    third.upload();
    let fourth = repository.job("fourth");
    assert_eq!(fourth.found(0..9), [3, 4, 5, 6, 7, 8]);
    assert_eq!(fourth.count("remote.errors"), 0, "{:?}", fourth.warnings);
    repository.service.set(&json!({ "quota": 10u64 << 30 }));
    repository.build(&fourth, 0..3);
    assert_eq!(fourth.upload().uploaded, 3);
    assert_eq!(repository.job("fifth").found(0..9).len(), 9);
}

/// Replaces the number at `field` in each row of a bundle's index.
fn lie(bundle: &mut Vec<u8>, field: usize, number: u64) {
    let word = |at: usize| {
        let bytes = bundle[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(bytes)).expect("small")
    };
    let (begin, length) = (word(16), word(24));
    let packed = &bundle[begin..begin + length];
    let mut index = zstd::bulk::decompress(packed, 1 << 20).expect("an index");
    // One bundle is named before the rows.
    for row in index[20..].chunks_exact_mut(65) {
        row[field..field + 8].copy_from_slice(&number.to_le_bytes());
    }
    let packed = zstd::bulk::compress(&index, 3).expect("packed");
    bundle.truncate(begin);
    bundle.extend_from_slice(&packed);
    bundle[24..32].copy_from_slice(&(packed.len() as u64).to_le_bytes());
}
