//! A cache that is not there, is no folder, is full or is damaged never fails a build.

use crate::space::{Program, TestSpace, make_dir, remove_tree};
use crate::{TWO, space};
use std::fs;
use std::panic::UnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Command;

fn twice(space: &TestSpace) {
    space.agree_twice_uncounted(TWO);
}

#[test]
fn folder_cannot_be_made() {
    let mut space = space("cache-nowhere");
    // Not even root can make a folder there.
    space.set_env("WARPCC_DIR", "/proc/warpcc");
    twice(&space);
}

#[test]
fn a_result_that_cannot_be_stored_is_one_warning() {
    let mut space = space("cache-told");
    space.set_env("WARPCC_DIR", "/proc/warpcc");
    let outcome = space.run(&Program::Launcher, &space.words(TWO));
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 0, "{said}");
    assert!(
        said.starts_with("warpcc: warning: built, but not stored") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn stats_do_not_take_counters_that_cannot_be_read_for_zeros() {
    let space = space("cache-counters");
    space.build(TWO);
    let counters = space.cache().join("stats-v1.log");
    remove_tree(&counters);
    make_dir(&counters);
    let outcome = space.warpcc_with(&["stats"]);
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 2, "{said}{}", outcome.stdout_text());
    assert!(
        said.contains("failed to read") && said.contains("stats-v1.log"),
        "{said}"
    );
}

#[test]
fn folder_with_a_name_that_the_loader_cannot_take() {
    for name in ["with space", "with:colon", "with$dollar"] {
        let mut space = space("cache-named");
        let folder = space.beside(name);
        space.set_env("WARPCC_DIR", &folder.to_string_lossy());
        let build = space.agree(TWO);
        build.demand_no_direct_hit();
        space.again(TWO, &build).demand_direct_hit();
    }
}

#[test]
fn folder_is_a_file() {
    let space = space("cache-file");
    remove_tree(&space.cache());
    fs::write(space.cache(), "not a folder").expect("the file");
    twice(&space);
    assert_eq!(
        fs::read(space.cache()).expect("the file"),
        b"not a folder",
        "someone else's file"
    );
}

#[test]
fn folder_is_not_ours_to_write() {
    let mut space = space("cache-read-only");
    // Root may write anywhere, but not in a folder of /sys.
    space.set_env("WARPCC_DIR", "/sys/kernel");
    twice(&space);
}

#[test]
fn everything_inside_is_a_folder_or_a_file_too_many() {
    let space = space("cache-twisted");
    space.build(TWO);
    // Each file becomes a folder and each empty folder a file.
    for path in files(&space.cache()) {
        remove_tree(&path);
        make_dir(&path);
    }
    twice(&space);
}

/// Runs the test with a file system in memory in place of the cache.
#[allow(clippy::print_stderr, reason = "a part that did not run must be seen")]
fn on_tmpfs(space: &TestSpace, options: &str, test: impl FnOnce() + UnwindSafe) {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(space.cache())
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        eprintln!("NOT RUN: a cache mounted with {options}, because mounting needs root");
        return;
    }
    let result = std::panic::catch_unwind(test);
    let unmounted = Command::new("umount").arg(space.cache()).status();
    assert!(
        unmounted.is_ok_and(|s| s.success()),
        "umount {}",
        space.cache().display()
    );
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn disk_is_full() {
    let space = space("cache-full");
    for size in ["16k", "96k", "512k"] {
        on_tmpfs(&space, &format!("size={size}"), || twice(&space));
    }
}

/// The loader maps no library from there, so the watch library is in `TMPDIR`.
#[test]
fn no_program_may_run_from_the_cache() {
    let space = space("cache-noexec");
    on_tmpfs(&space, "noexec", || {
        let build = space.build(TWO);
        space.again(TWO, &build).demand_direct_hit();
    });
}

/// Damage every file of a warm cache in one way; the builds must be right, and a cold
/// build afterwards must heal it.
fn damaged(name: &str, damage: impl Fn(&Path, Vec<u8>)) {
    let space = space(name);
    let build = space.build(TWO);
    space.again(TWO, &build).demand_direct_hit();
    let files = files(&space.cache());
    assert!(!files.is_empty(), "nothing in the cache to damage");
    for path in files {
        let bytes = fs::read(&path).unwrap_or_default();
        damage(&path, bytes);
    }
    twice(&space);
    // Another part of the cache is reached from another invocation.
    let other = TWO.replace("out.o", "other.o -Xptxas -O2");
    space.agree_twice_uncounted(&other);
}

#[test]
fn entries_with_a_flipped_byte() {
    // Each entry in another quarter, and once more in the one after the next.
    for first in [0, 2] {
        let count = std::cell::Cell::new(first);
        damaged(&format!("flip-{first}"), |path, mut bytes| {
            let place = bytes.len() * (count.replace(count.get() + 1) % 4) / 4;
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 0x20;
            }
            fs::write(path, bytes).expect("damaging");
        });
    }
}

#[test]
fn entries_cut_short() {
    damaged("cut", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2]).expect("damaging");
    });
    damaged("empty", |path, _| fs::write(path, []).expect("damaging"));
}

#[test]
fn entries_longer_than_they_were() {
    damaged("longer", |path, mut bytes| {
        bytes.extend_from_slice(b"more");
        fs::write(path, bytes).expect("damaging");
    });
}

#[test]
fn entries_exchanged() {
    // Every file is a good one, but not the one that its name says.
    let last = std::cell::RefCell::new(None::<Vec<u8>>);
    damaged("exchanged", |path, bytes| {
        if let Some(other) = last.replace(Some(bytes)) {
            fs::write(path, other).expect("damaging");
        }
    });
}

#[test]
fn half_of_the_entries_gone() {
    let count = std::cell::Cell::new(0);
    damaged("gone", |path, _| {
        count.set(count.get() + 1);
        if count.get() % 2 == 0 {
            remove_tree(path);
        }
    });
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = item.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
