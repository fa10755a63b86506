//! An input manifest holds exactly while a run would see what it saw.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use warpcc_cache::{Difference, InputManifest, InputManifestBuilder, ManifestVerdict, Unsettled};

struct Space(TempDir);

impl Space {
    fn new() -> Space {
        Space(tempfile::tempdir().expect("temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, text).expect("write");
    }

    fn base(&self) -> &Path {
        self.0.path()
    }

    /// Relative names, after everything has settled.
    fn see(&self, read: &[&str], absent: &[&str]) -> Result<InputManifest, Unsettled> {
        settle();
        self.see_at(SystemTime::now(), read, absent)
    }

    fn see_at(
        &self,
        started: SystemTime,
        read: &[&str],
        absent: &[&str],
    ) -> Result<InputManifest, Unsettled> {
        let mut builder = InputManifestBuilder::new(started).relative_to(self.base());
        for path in read {
            builder.read(Path::new(path));
        }
        for path in absent {
            builder.absent(Path::new(path));
        }
        builder.finish()
    }

    fn check(&self, manifest: &InputManifest) -> ManifestVerdict {
        manifest.check(self.base())
    }
}

fn settle() {
    std::thread::sleep(Duration::from_millis(60));
}

fn changed(path: &str) -> ManifestVerdict {
    ManifestVerdict::Differs(Difference::FileChanged { path: path.into() })
}

fn missing(path: &str) -> ManifestVerdict {
    ManifestVerdict::Differs(Difference::FileMissing { path: path.into() })
}

fn appeared(path: &str) -> ManifestVerdict {
    ManifestVerdict::Differs(Difference::FileAppeared { path: path.into() })
}

#[test]
fn nothing_touched_holds() {
    let space = Space::new();
    space.write("a.cu", "a");
    space.write("inc/b.h", "b");
    let manifest = space
        .see(&["a.cu", "inc/b.h"], &["b.h", "other/b.h"])
        .expect("settled");
    assert_eq!(space.check(&manifest), ManifestVerdict::Holds);
    assert_eq!(manifest.files().count(), 2);
    let directories: Vec<_> = manifest.directories().collect();
    assert_eq!(directories.len(), 1);
    assert_eq!(directories[0].absent, ["b.h", "other/b.h"]);
}

#[test]
fn absolute_paths_need_no_base() {
    let space = Space::new();
    space.write("a.cu", "a");
    settle();
    let mut builder = InputManifestBuilder::new(SystemTime::now());
    builder.read(&space.path("a.cu"));
    builder.absent(&space.path("b.h"));
    let manifest = builder.finish().expect("settled");
    assert_eq!(manifest.file_count(), 1);
    assert_eq!(
        manifest.check(Path::new("/nowhere")),
        ManifestVerdict::Holds
    );
}

#[test]
fn special_files_give_no_manifest() {
    // The kernel's own files have another length than they say.
    for path in [
        "/dev/null",
        "/proc/self/maps",
        "/proc/version",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        if !Path::new(path).exists() {
            continue;
        }
        let mut builder = InputManifestBuilder::new(SystemTime::now());
        builder.read(Path::new(path));
        assert!(builder.finish().is_err(), "{path}");
    }
}

#[test]
fn touched_but_unchanged_holds_and_is_refreshed() {
    let space = Space::new();
    space.write("a.cu", "a");
    let manifest = space.see(&["a.cu"], &[]).expect("settled");
    space.write("a.cu", "a");
    settle();
    let ManifestVerdict::HoldsAfterHashing(refreshed) = space.check(&manifest) else {
        panic!("must look closer");
    };
    assert_ne!(refreshed, manifest);
    assert_eq!(space.check(&refreshed), ManifestVerdict::Holds);
}

#[test]
fn a_brand_new_signature_is_not_relied_on() {
    let space = Space::new();
    space.write("a.cu", "a");
    let manifest = space.see(&["a.cu"], &[]).expect("settled");
    // Fresh at the check: the old signature stays, and the next check hashes again.
    space.write("a.cu", "a");
    match space.check(&manifest) {
        ManifestVerdict::HoldsAfterHashing(refreshed) => {
            space.write("a.cu", "b");
            assert_eq!(space.check(&refreshed), changed("a.cu"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_content_of_the_same_size_and_mtime_differs() {
    let space = Space::new();
    space.write("a.cu", "a");
    let manifest = space.see(&["a.cu"], &[]).expect("settled");
    let path = space.path("a.cu");
    let time = fs::metadata(&path)
        .and_then(|m| m.modified())
        .expect("time");
    // Written in place, so that only the change time tells.
    fs::write(&path, "b").expect("write");
    let file = fs::File::options().write(true).open(&path).expect("open");
    file.set_modified(time).expect("set time");
    assert_eq!(space.check(&manifest), changed("a.cu"));
}

#[test]
fn another_size_or_no_file_differs() {
    let space = Space::new();
    space.write("a.cu", "a");
    space.write("b.h", "b");
    let manifest = space.see(&["a.cu", "b.h"], &["c.h"]).expect("settled");
    space.write("a.cu", "aa");
    assert_eq!(space.check(&manifest), changed("a.cu"));
    fs::remove_file(space.path("a.cu")).expect("remove");
    assert_eq!(space.check(&manifest), missing("a.cu"));
    fs::create_dir(space.path("a.cu")).expect("folder");
    assert_eq!(space.check(&manifest), missing("a.cu"));
    space.write("b.h", "bb");
    space.write("c.h", "");
    let paths: Vec<_> = manifest.differences(space.base());
    assert_eq!(
        paths,
        [
            Difference::FileMissing {
                path: "a.cu".into()
            },
            Difference::FileChanged { path: "b.h".into() },
            Difference::FileAppeared { path: "c.h".into() },
        ]
    );
}

#[test]
fn a_retargeted_link_is_followed() {
    let space = Space::new();
    space.write("one/a.h", "one");
    space.write("two/a.h", "two");
    space.write("same/a.h", "one");
    symlink("one", space.path("now")).expect("link");
    let manifest = space.see(&["now/a.h"], &["now/b.h"]).expect("settled");
    assert_eq!(space.check(&manifest), ManifestVerdict::Holds);
    let retarget = |to: &str| {
        fs::remove_file(space.path("now")).expect("remove");
        symlink(to, space.path("now")).expect("link");
    };
    retarget("two");
    assert_eq!(space.check(&manifest), changed("now/a.h"));
    retarget("same");
    assert!(matches!(
        space.check(&manifest),
        ManifestVerdict::HoldsAfterHashing(_)
    ));
    space.write("same/b.h", "");
    assert_eq!(space.check(&manifest), appeared("now/b.h"));
}

#[test]
fn a_header_that_shadows_another_is_noticed() {
    let space = Space::new();
    space.write("late/a.h", "a");
    space.write("early/other.h", "");
    let manifest = space.see(&["late/a.h"], &["early/a.h"]).expect("settled");
    // Another name in the same folder changes the folder, not the answer.
    space.write("early/third.h", "");
    assert!(matches!(
        space.check(&manifest),
        ManifestVerdict::HoldsAfterHashing(_)
    ));
    space.write("early/a.h", "a");
    assert_eq!(space.check(&manifest), appeared("early/a.h"));
}

#[test]
fn a_missing_folder_that_is_created_is_noticed() {
    let space = Space::new();
    space.write("a.cu", "a");
    let manifest = space
        .see(&["a.cu"], &["gen/deep/a.h", "gen/deep/b.h", "gen2/c.h"])
        .expect("settled");
    fs::create_dir(space.path("gen")).expect("folder");
    settle();
    // The folder alone is no file; but its names no longer show above it, not even in a refreshed manifest.
    let ManifestVerdict::HoldsAfterHashing(refreshed) = space.check(&manifest) else {
        panic!("must look closer");
    };
    space.write("gen/deep/b.h", "");
    assert_eq!(space.check(&refreshed), appeared("gen/deep/b.h"));
    assert_eq!(space.check(&manifest), appeared("gen/deep/b.h"));
}

#[test]
fn a_missing_name_behind_a_dangling_link_is_noticed() {
    let space = Space::new();
    space.write("x/keep", "");
    symlink("../target", space.path("x/link")).expect("link");
    symlink("../file", space.path("x/a.h")).expect("link");
    let manifest = space.see(&[], &["x/link/b.h", "x/a.h"]).expect("settled");
    assert_ne!(space.check(&manifest), appeared("x/a.h"));
    // Neither changes the folder that has the links.
    space.write("file", "");
    assert_eq!(space.check(&manifest), appeared("x/a.h"));
    fs::remove_file(space.path("file")).expect("remove");
    space.write("target/b.h", "");
    assert_eq!(space.check(&manifest), appeared("x/link/b.h"));
}

#[test]
fn a_vanished_folder_has_no_names() {
    let space = Space::new();
    space.write("inc/keep", "");
    let manifest = space.see(&[], &["inc/a.h"]).expect("settled");
    fs::remove_dir_all(space.path("inc")).expect("remove");
    assert!(!matches!(
        space.check(&manifest),
        ManifestVerdict::Differs(_)
    ));
    space.write("inc/a.h", "");
    assert_eq!(space.check(&manifest), appeared("inc/a.h"));
}

#[test]
fn a_folder_is_no_file_but_may_become_one() {
    let space = Space::new();
    space.write("inc/cuda/x.h", "");
    let mut builder = InputManifestBuilder::new(SystemTime::now()).relative_to(space.base());
    builder.no_file(Path::new("inc/cuda"));
    let manifest = builder.finish().expect("a folder is passed over");
    assert_eq!(space.check(&manifest), ManifestVerdict::Holds);
    fs::remove_dir_all(space.path("inc/cuda")).expect("remove");
    assert!(matches!(
        space.check(&manifest),
        ManifestVerdict::HoldsAfterHashing(_)
    ));
    space.write("inc/cuda", "");
    assert_eq!(space.check(&manifest), appeared("inc/cuda"));
}

#[test]
fn a_folder_is_not_nothing() {
    let space = Space::new();
    space.write("made/x", "");
    let error = space.see(&[], &["made"]).expect_err("it is there now");
    assert!(matches!(error, Unsettled::Appeared { .. }), "{error}");
    let manifest = space.see(&[], &["later"]).expect("settled");
    space.write("later/x", "");
    assert_eq!(space.check(&manifest), appeared("later"));
}

#[test]
fn a_file_where_a_folder_was_sought() {
    let space = Space::new();
    space.write("inc/x", "a file");
    let manifest = space.see(&[], &["inc/x/a.h"]).expect("settled");
    assert_eq!(space.check(&manifest), ManifestVerdict::Holds);
    fs::remove_file(space.path("inc/x")).expect("remove");
    space.write("inc/x/a.h", "");
    assert_eq!(space.check(&manifest), appeared("inc/x/a.h"));
}

#[test]
fn a_folder_that_just_changed_is_looked_into() {
    let space = Space::new();
    space.write("a.cu", "a");
    settle();
    let started = SystemTime::now();
    space.write("a.o", "");
    let manifest = space.see_at(started, &["a.cu"], &["a.h"]).expect("settled");
    // Possibly within the same tick of the clock: no time may tell.
    space.write("a.h", "");
    assert_eq!(space.check(&manifest), appeared("a.h"));
}

#[test]
fn files_that_change_during_the_run_give_no_manifest() {
    let space = Space::new();
    space.write("a.cu", "a");
    settle();
    let started = SystemTime::now();
    space.write("a.cu", "b");
    let seen = space.see_at(started, &["a.cu"], &[]);
    assert!(matches!(seen, Err(Unsettled::ChangedDuring { path }) if path == Path::new("a.cu")));
    let seen = space.see_at(started, &["gone.h"], &[]);
    assert!(matches!(seen, Err(Unsettled::Vanished { .. })));
    let seen = space.see(&[], &["a.cu"]);
    assert!(matches!(seen, Err(Unsettled::Appeared { .. })));
    let seen = space.see(&["."], &[]);
    assert!(matches!(seen, Err(Unsettled::NotAFile { .. })));
}

#[test]
fn a_pipe_does_not_hang() {
    let space = Space::new();
    let status = std::process::Command::new("mkfifo")
        .arg(space.path("p"))
        .status();
    assert!(status.expect("mkfifo").success());
    let seen = space.see(&["p"], &[]);
    assert!(matches!(seen, Err(Unsettled::NotAFile { .. })));
}

#[test]
fn each_text_is_shown_once_with_one_thread_or_several() {
    for count in [3, 500] {
        let space = Space::new();
        for i in 0..count {
            space.write(&format!("h/{i}.h"), &format!("text {i}"));
        }
        settle();
        let mut builder = InputManifestBuilder::new(SystemTime::now()).relative_to(space.base());
        for i in (0..count).chain(0..count) {
            builder.read(&PathBuf::from(format!("h/{i}.h")));
        }
        let mut seen = Vec::new();
        let manifest = builder
            .finish_with(&mut |path, text| seen.push((path.to_path_buf(), text.to_vec())))
            .expect("settled");
        assert_eq!(seen.len(), count);
        assert!(seen.iter().all(|(path, text)| {
            let stem = path.file_stem().and_then(|s| s.to_str()).expect("stem");
            text == format!("text {stem}").as_bytes()
        }));
        for file in manifest.files() {
            let text = fs::read(space.base().join(&file.path)).expect("read");
            assert_eq!(file.content, *blake3::hash(&text).as_bytes());
        }
    }
}
