//! Tests calls whose outputs are not new files: the tree afterwards must be nvcc's, whether the call hits or not.

mod compare;
mod failures;
mod process;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::space::TestSpace;
use compare::{Arrange, FREE, OLD, SOURCE, same_tree, same_tree_once, work_with};

/// The reason that `warpcc stats` gives.
const NOT_PLAIN: &str = "an output is not a plain file";

fn mode(work: &Path, bits: u32) {
    let file = work.join("out");
    fs::write(&file, OLD).expect("write");
    fs::set_permissions(file, fs::Permissions::from_mode(bits)).expect("chmod");
}

fn renamed(work: &Path, arrange: Arrange) {
    arrange(work);
    fs::rename(work.join("out"), work.join("out.a")).expect("rename");
}

const PLAIN: Arrange = |work| fs::write(work.join("out"), OLD).expect("write");
const MODE_600: Arrange = |work| mode(work, 0o600);
const MODE_755: Arrange = |work| mode(work, 0o755);
const MODE_444: Arrange = |work| mode(work, 0o444);
const HARD_LINK: Arrange = |work| {
    fs::write(work.join("other"), OLD).expect("write");
    fs::hard_link(work.join("other"), work.join("out")).expect("link");
};
const LINK: Arrange = |work| {
    fs::write(work.join("target"), OLD).expect("write");
    symlink("target", work.join("out")).expect("link");
};
const DANGLING: Arrange = |work| symlink("target", work.join("out")).expect("link");
const NOWHERE: Arrange = |work| symlink("nowhere/target", work.join("out")).expect("link");
const FOLDER: Arrange = |work| fs::create_dir(work.join("out")).expect("folder");
const LINK_TO_FOLDER: Arrange = |work| {
    fs::create_dir(work.join("folder")).expect("folder");
    symlink("folder", work.join("out")).expect("link");
};
const NULL: Arrange = |work| symlink("/dev/null", work.join("out")).expect("link");
const PIPE: Arrange = |work| {
    let made = Command::new("mkfifo").arg(work.join("out")).status();
    assert!(made.expect("mkfifo").success());
};
const TO_SOURCE: Arrange = |work| symlink("k.cu", work.join("out")).expect("link");

/// Outputs that only nvcc may write, because its tools write into the file that is there.
const ODD: [(&str, Arrange); 11] = [
    ("a file of mode 600", MODE_600),
    ("a file of mode 755", MODE_755),
    ("a file of mode 444", MODE_444),
    ("a file with two names", HARD_LINK),
    ("a link", LINK),
    ("a dangling link", DANGLING),
    ("a link into a missing folder", NOWHERE),
    ("a folder", FOLDER),
    ("a link to a folder", LINK_TO_FOLDER),
    ("a link to /dev/null", NULL),
    ("a link to the source", TO_SOURCE),
];

/// Those that differ most: a mode, a second name, a link that leads nowhere.
const FEW: [(&str, Arrange); 3] = [
    ("a file of mode 755", MODE_755),
    ("a file with two names", HARD_LINK),
    ("a dangling link", DANGLING),
];

const LINES: [(&str, &str); 4] = [
    ("outputs-cubin", "-cubin k.cu -o out"),
    ("outputs-object", "-c k.cu -o out"),
    ("outputs-program", "main.cpp -o out -cudart none"),
    ("outputs-dependencies", "-c k.cu -o k.o -MD -MF out"),
];

/// Tests odd outputs, cold and with the call's result in the cache, and the usual ones, which must still hit.
#[track_caller]
fn each_name(name: &str, line: &str, odd: &[(&str, Arrange)]) {
    let space = TestSpace::new(name);
    let (what, arrange) = ODD[0];
    let way = same_tree_once(&space, line, arrange);
    assert_eq!(way, NOT_PLAIN, "{what}, with an empty cache");
    assert_eq!(same_tree(&space, line, FREE), ["", "hit"]);
    for &(what, arrange) in odd {
        let way = same_tree_once(&space, line, arrange);
        // A program has this mode when it is new.
        let is_usual = line.starts_with("main.cpp") && what.ends_with("755");
        let expected = if is_usual { "hit" } else { NOT_PLAIN };
        assert_eq!(way, expected, "{what}, with a full cache");
    }
    assert_eq!(same_tree_once(&space, line, FREE), "hit");
}

#[test]
fn every_name_of_ptx() {
    each_name("outputs-ptx", "-ptx k.cu -o out", &ODD);
}

#[test]
fn a_few_names_of_the_others() {
    for (name, line) in LINES {
        each_name(name, line, &FEW);
    }
}

#[test]
fn every_name_of_the_others() {
    for (name, line) in LINES {
        each_name(name, line, &ODD);
    }
}

#[test]
fn library() {
    let space = TestSpace::new("outputs-library");
    let line = "-lib k.cu -o out.a";
    assert_eq!(same_tree(&space, line, FREE), ["", "hit"]);
    // nvcc itself removes whatever has the name.
    let [mode, link, hard]: [Arrange; 3] = [
        |work| renamed(work, MODE_600),
        |work| renamed(work, LINK),
        |work| renamed(work, HARD_LINK),
    ];
    for arrange in [mode, link, hard] {
        assert_eq!(same_tree_once(&space, line, arrange), NOT_PLAIN);
    }
}

#[test]
fn a_plain_file_is_replaced_and_hits() {
    let space = TestSpace::new("outputs-plain");
    for line in ["-ptx k.cu -o out", "-c k.cu -o x.o -MD -MF out"] {
        assert_eq!(same_tree(&space, line, PLAIN), ["", "hit"], "{line}");
    }
}

#[test]
fn a_pipe() {
    let space = TestSpace::new("outputs-pipe");
    for line in ["-ptx k.cu -o out", "-cubin k.cu -o out"] {
        same_tree(&space, line, FREE);
        assert_eq!(same_tree_once(&space, line, PIPE), NOT_PLAIN, "{line}");
    }
}

#[test]
fn standard_output() {
    let space = TestSpace::new("outputs-stdout");
    for options in ["-ptx", "-cuda", "-optix-ir", "-cubin", "-c"] {
        work_with(&space, FREE);
        space.build(&format!("{options} k.cu -o x"));
        let way = same_tree_once(&space, &format!("{options} k.cu -o -"), FREE);
        assert_eq!(way, NOT_PLAIN, "{options}");
    }
    let way = same_tree_once(&space, "-c k.cu -o k.o -MD -MF -", FREE);
    assert_eq!(way, NOT_PLAIN);
    // Not the machine's own /dev/stdout, which a mistake here would break.
    let device: Arrange = |work| {
        fs::create_dir(work.join("dev")).expect("folder");
        symlink("/proc/self/fd/1", work.join("dev/stdout")).expect("link");
    };
    for line in [
        "-ptx k.cu -o dev/stdout",
        "-c k.cu -o k.o -MD -MF dev/stdout",
    ] {
        assert_eq!(same_tree_once(&space, line, device), NOT_PLAIN, "{line}");
    }
}

#[test]
fn kept_files() {
    let space = TestSpace::new("outputs-kept");
    let line = "-c k.cu -o k.o -keep -arch=sm_90";
    assert_eq!(same_tree(&space, line, FREE), ["", "hit"]);
    let linked: Arrange = |work| {
        fs::write(work.join("elsewhere"), OLD).expect("write");
        symlink("elsewhere", work.join("k.ptx")).expect("link");
    };
    assert_eq!(same_tree_once(&space, line, linked), NOT_PLAIN);
}

#[test]
fn outputs_that_are_one_file_or_an_input() {
    let space = TestSpace::new("outputs-one");
    let folder: Arrange = |work| {
        fs::create_dir(work.join("folder")).expect("folder");
        symlink("folder", work.join("link")).expect("link");
    };
    for line in [
        "-c k.cu -o out -MD -MF out",
        "-c k.cu -o folder/out -MD -MF link/../folder/out",
        "-c k.cu -o folder/out -MD -MF link/out",
        "-ptx k.cu -o folder/../k.cu",
    ] {
        let ways = same_tree(&space, line, folder);
        let ours = |way: &String| way.is_empty() || way == "hit";
        assert!(!ways.iter().any(ours), "{line}: {ways:?}");
    }
    // A folder may be reached through a link.
    let line = "-c k.cu -o link/out";
    assert_eq!(same_tree(&space, line, folder), ["", "hit"]);
}

#[test]
fn a_folder_that_hands_down_its_group() {
    let space = TestSpace::new("outputs-group");
    // Without root the folder keeps our own group, and the test asks less.
    let shared: Arrange = |work| {
        let folder = work.join("shared");
        fs::create_dir(&folder).expect("folder");
        let _ = std::os::unix::fs::chown(&folder, None, Some(54321));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o2775)).expect("chmod");
    };
    let line = "-c k.cu -o shared/out";
    assert_eq!(same_tree(&space, line, shared), ["", "hit"]);
    let again: Arrange = |work| {
        let folder = work.join("shared");
        fs::create_dir(&folder).expect("folder");
        let _ = std::os::unix::fs::chown(&folder, None, Some(54321));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o2775)).expect("chmod");
        fs::write(folder.join("out"), OLD).expect("write");
    };
    assert_eq!(same_tree(&space, line, again), ["hit", "hit"]);
}

#[test]
fn clang_enters_what_is_no_file() {
    let space = TestSpace::new("outputs-clang");
    let source: Arrange = |work| {
        fs::write(
            work.join("k.cu"),
            format!("#include \"header.h\"\n{SOURCE}"),
        )
        .expect("write");
    };
    for more in ["-MD -MF out", "-MMD -MP -MF out"] {
        let line = format!(
            "-c k.cu -o k.o -arch=sm_90 -ccbin clang++-19 -Xcompiler -Wno-c23-extensions {more}"
        );
        let ways = same_tree(&space, &line, source);
        assert_eq!(ways, ["", "hit"], "{more}");
    }
}
