//! Tests that kept results of nvcc cannot hide a difference: a result that nvcc no longer makes fails the test.

use std::fs;
use std::os::unix::fs::MetadataExt;

use warpcc_testkit::stored_results::Store;

use crate::case;
use crate::reference::{self, References, SHARES};
use crate::space::{TestSpace, Toolkit};
use crate::verdict::{lines_for, problems};

/// Uses a case that nvcc refuses, which takes no time.
pub fn kept_references_are_checked() {
    let mut cases = case::all().into_iter();
    let case = cases.find(|case| case.name == "keep-dir-missing");
    let case = case.expect("cases/keep-dir-missing.cu");
    let space = TestSpace::with_toolkit("kept-references", Toolkit::newest());
    let lines = lines_for(&case, space.toolkit.name);
    let key = reference::key(&case, &space, &lines).expect("a key");
    let store = Store {
        folder: space.beside("references"),
        limit: 1 << 20,
    };
    let on = |day: u64| References {
        store: store.clone(),
        day,
    };
    let due = |day: &u64| on(*day).is_due(&case, space.toolkit.name);
    let (its_day, another): (Vec<u64>, Vec<u64>) = (0..SHARES).partition(due);
    assert_eq!(its_day.len(), 1, "one day in {SHARES}");
    let entry = || {
        let listing = fs::read_dir(&store.folder).expect("the folder");
        let inodes: Vec<u64> = listing
            .map(|item| {
                item.and_then(|item| item.metadata())
                    .expect("an entry")
                    .ino()
            })
            .collect();
        assert_eq!(inodes.len(), 1, "one entry");
        inodes[0]
    };
    let asked = |day| problems(&case, &space, &lines, &on(day));

    // The result is kept and used, and on the case's day nvcc runs again.
    assert_eq!(asked(another[0]), [""; 0]);
    let first = entry();
    assert_eq!(asked(another[1]), [""; 0]);
    assert_eq!(entry(), first, "nvcc ran again");
    assert_eq!(asked(its_day[0]), [""; 0]);
    assert_ne!(entry(), first, "nvcc did not run again");

    // A wrong result is found on any day, and replaced.
    for day in [another[0], its_day[0]] {
        let mut wrong = on(day).read(key).expect("it is kept");
        wrong.outcomes[0].stdout.push(b'!');
        on(day).keep(key, &wrong);
        let found = asked(day).join("\n");
        assert!(found.contains("no longer makes what was kept"), "{found}");
        assert_eq!(asked(another[1]), [""; 0]);
    }
}
