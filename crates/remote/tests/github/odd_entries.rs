//! Tests entries that somebody else has put into the repository's cache: they are passed over and counted, and the rest is used.

use crate::Repository;

/// What all entries of ours have in common beside their names.
const VERSION: &str = "8eac9986a0863351e10c3599e643ec5b00be25e8d5620582eb758eb7a9000c3e";

impl Repository {
    fn plant(&self, name: &str, bytes: &[u8]) {
        let name = format!("warpcc:default:{name}");
        self.service.plant(&name, VERSION, bytes);
    }
}

/// The first bytes of a bundle, which say that its index is where nothing is.
fn beginning(number: u64) -> Vec<u8> {
    let mut bytes = b"warpccB1".to_vec();
    for field in [number << 32 | 5, 32, 100] {
        bytes.extend_from_slice(&u64::to_le_bytes(field));
    }
    bytes
}

#[test]
fn an_entry_that_is_not_understood_stops_neither_look_ups_nor_uploads() {
    for odd in [
        // No number, another way to write one, numbers that no bundle can have, and the empty name.
        "foo",
        "0",
        "+0000001",
        "1",
        "000000001",
        "4294967295",
        "4294967296",
        "99999999999",
        "00000000",
        "",
        "00000001x",
        "0000000",
        // Names like those of bundles.
        "99999999",
        "00000777",
        "50000000",
    ] {
        let repository = Repository::new();
        let first = repository.job("first");
        repository.build(&first, 0..3);
        assert_eq!(first.upload().waiting, 0);
        repository.plant(odd, b"not a bundle");
        let second = repository.job("second");
        assert_eq!(second.found(0..3).len(), 3, "{odd}: {:?}", second.warnings);
        assert_eq!(second.count("remote.errors"), 0, "{odd}");
        assert!(second.count("remote.ignored_entries") >= 1, "{odd}");
        repository.build(&second, 3..6);
        let report = second.upload();
        assert_eq!(
            (report.uploaded, report.waiting),
            (3, 0),
            "{odd}: {report:?}"
        );
        // The newest entry is ours again.
        let third = repository.job("third");
        assert_eq!(third.found(0..6).len(), 6, "{odd}: {:?}", third.warnings);
        assert_eq!(third.count("remote.errors"), 0, "{odd}");
    }
}

#[test]
fn bundles_that_say_nothing_true_are_passed_over() {
    for number in [1, 2, 9, 99_999_998] {
        let repository = Repository::new();
        for (name, results) in [("first", 0..3), ("second", 3..6)] {
            let job = repository.job(name);
            repository.build(&job, results);
            assert_eq!(job.upload().waiting, 0);
        }
        repository.plant(&format!("{number:08}"), &beginning(number));
        let third = repository.job("third");
        let found = third.found(0..6);
        // A bundle that has been replaced is lost, and nothing else is.
        let lost = if number <= 2 { 3 } else { 0 };
        assert!(
            found.len() >= 6 - lost,
            "{number}: {found:?} {:?}",
            third.warnings
        );
        assert_eq!(third.count("remote.errors"), 0, "{number}");
        repository.build(&third, 0..9);
        assert_eq!(third.upload().waiting, 0, "{number}");
        assert_eq!(repository.job("fourth").found(0..9).len(), 9, "{number}");
    }
}

#[test]
fn many_odd_entries_end_the_search_and_not_the_build() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..3);
    first.upload();
    // In the way of every beginning.
    for length in 0..8 {
        for digit in 0..10 {
            repository.plant(&format!("{}{digit}x", "0".repeat(length)), b"odd");
        }
    }
    let finds = repository.service.counts()["find"];
    let second = repository.job("second");
    second.found(0..3);
    assert_eq!(second.count("remote.errors"), 0, "{:?}", second.warnings);
    let finds = repository.service.counts()["find"] - finds;
    assert!(finds <= 100, "{finds}");
    repository.build(&second, 0..6);
    assert_eq!(second.upload().waiting, 0);
    assert_eq!(repository.job("third").found(0..6).len(), 6);
}

#[test]
fn names_that_others_have_taken_are_left_behind() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..3);
    first.upload();
    for number in 2..40 {
        repository.plant(&format!("{number:08}"), b"not a bundle");
    }
    // The newest entry is ours, so that the names behind it are tried.
    repository.plant("00000050", b"not a bundle");
    let second = repository.job("second");
    repository.build(&second, 3..6);
    let report = second.upload();
    assert_eq!((report.uploaded, report.waiting), (3, 0), "{report:?}");
    assert_eq!(repository.job("third").found(3..6).len(), 3);
}

/// Nine bundles beside each other, each with an index of the greatest size, which is some kilobytes packed.
#[test]
fn huge_indexes_beside_each_other_hide_nothing_of_the_newest() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..3);
    first.upload();
    let zeros = zstd::bulk::compress(&vec![0; 25 << 20], 3).expect("packed");
    for number in 2..10 {
        let mut bytes = beginning(number);
        let length = (zeros.len() as u64).to_le_bytes();
        bytes[24..32].copy_from_slice(&length);
        bytes.extend_from_slice(&zeros);
        repository.plant(&format!("{number:08}"), &bytes);
    }
    let second = repository.job("second");
    assert_eq!(second.found(0..3).len(), 3, "{:?}", second.warnings);
    assert_eq!(second.count("remote.errors"), 0, "{:?}", second.warnings);
    assert_eq!(second.count("remote.ignored_entries"), 8);
    repository.build(&second, 0..6);
    assert_eq!(second.upload().waiting, 0);
    assert_eq!(repository.job("third").found(0..6).len(), 6);
}
