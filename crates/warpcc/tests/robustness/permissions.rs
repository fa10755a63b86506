//! Who may use a cache: its owner alone, whatever the umask, unless sharing is asked for; and whom its results are given to.

use crate::TWO;
use crate::neighbours::{open_up, somebody_else};
use crate::space::{Program, TestSpace, remove_tree};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Everything below a folder, with it, that others than its owner can use in one of the ways of `mask`.
fn open_to_others(folder: &Path, mask: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let known = fs::symlink_metadata(&path).expect("look");
        if known.mode() & mask != 0 {
            found.push(path.clone());
        }
        if known.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .expect("list")
                    .flatten()
                    .map(|f| f.path()),
            );
        }
    }
    found
}

fn with_umask(space: &TestSpace, umask: &str, before: &str) -> String {
    let nvcc = space.toolkit.nvcc.display().to_string();
    let script = format!("umask {umask}; {before} exec \"$@\"");
    let first = ["-c", &script, "sh"].map(str::to_owned).into_iter();
    let first = first.chain([TestSpace::warpcc().display().to_string(), nvcc]);
    let program = Program::Other("/bin/sh".into(), first.collect());
    let outcome = space.run(&program, &space.words(TWO));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    outcome.stderr_text()
}

#[test]
fn whatever_the_umask_the_cache_is_ours_alone() {
    for umask in ["0", "002"] {
        let space = crate::space("umask");
        remove_tree(&space.cache());
        assert_eq!(with_umask(&space, umask, ""), "");
        assert_eq!(space.stats().count("built"), 1);
        let open = open_to_others(&space.cache(), 0o022);
        assert!(open.is_empty(), "others can write: {open:?}");
        let open = open_to_others(&space.cache(), 0o077);
        let of_watch = |path: &&PathBuf| !path.starts_with(space.cache().join("watch-v1"));
        let open: Vec<_> = open.iter().filter(of_watch).collect();
        assert!(open.is_empty(), "others can look: {open:?}");
        assert_eq!(with_umask(&space, umask, "rm -f out.o;"), "");
        assert_eq!(space.stats().count("direct_hits"), 1);
    }
}

#[test]
fn under_a_umask_against_ourselves_nothing_is_made_that_stays_closed() {
    for umask in ["0777", "0222", "0100"] {
        let space = crate::space("umask-closed");
        remove_tree(&space.cache());
        // As root, nvcc can use what is closed to it.
        assert_eq!(with_umask(&space, umask, ""), "");
        for folder in [space.cache(), space.beside("board")] {
            assert!(!folder.exists(), "{umask}: {}", folder.display());
        }
        space.demand_no_leftovers(umask);
        // With another umask all is well again.
        assert_eq!(with_umask(&space, "022", "rm -f out.o;"), "");
        assert_eq!(space.stats().count("built"), 1);
    }
}

#[test]
fn a_cache_that_others_could_write_is_closed_once() {
    let space = crate::space("umask-before");
    with_umask(&space, "0", "");
    let mode = |mode| fs::set_permissions(space.cache(), fs::Permissions::from_mode(mode));
    mode(0o777).expect("chmod");
    let doctor = space.warpcc_with(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        said.contains("and now cannot") && said.contains("warpcc cache clear"),
        "{said}"
    );
    mode(0o777).expect("chmod");
    let said = with_umask(&space, "0", "");
    assert!(
        said.contains("and now cannot") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(with_umask(&space, "0", ""), "");
    assert!(open_to_others(&space.cache(), 0o022).is_empty());
    let doctor = space.warpcc_with(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        said.contains("only you can write to the cache folder"),
        "{said}"
    );
}

#[test]
fn shared_means_what_the_umask_says() {
    let mut space = crate::space("umask-shared");
    remove_tree(&space.cache());
    space.set_env("WARPCC_SHARED", "1");
    assert_eq!(with_umask(&space, "002", ""), "");
    let mode = |path: PathBuf| fs::metadata(path).expect("look").mode() & 0o777;
    assert_eq!(mode(space.cache()), 0o775);
    assert_eq!(mode(space.cache().join("stats-v1.log")), 0o664);
    // But what runs in every compiler comes from elsewhere.
    assert!(
        !space.cache().join("watch-v1").exists()
            || fs::read_dir(space.cache().join("watch-v1"))
                .expect("list")
                .next()
                .is_none()
    );
    assert_eq!(with_umask(&space, "002", "rm -f out.o;"), "");
    assert_eq!(space.stats().count("direct_hits"), 1);
}

#[test]
fn a_cache_of_another_user_is_not_used() {
    let mut space = crate::space("foreign-cache");
    open_up(&space);
    let theirs = space.tmp().join("theirs");
    if somebody_else(&format!("mkdir -m 755 {}", theirs.display())).is_none() {
        return crate::skipped("nobody else can be become here");
    }
    space.set_env("WARPCC_DIR", &theirs.to_string_lossy());
    let outcome = space.run(&Program::Launcher, &space.words(TWO));
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 0, "{said}");
    assert!(
        said.lines().count() == 1 && said.contains("theirs belongs to another user"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&theirs).expect("list").count(), 0);
    let doctor = space.warpcc_with(&["doctor"]);
    assert_eq!(doctor.code, 2);
    space.set_env("WARPCC_SHARED", "1");
    let outcome = space.run(&Program::Launcher, &space.words(TWO));
    assert_eq!((outcome.code, outcome.stderr_text().as_str()), (0, ""));
    assert_eq!(space.stats().count("built"), 1);
}

#[test]
fn locked_logs_hold_nobody_up_for_long() {
    let space = crate::space("locked-logs");
    let build = space.agree(TWO);
    // As somebody who could read them before they were closed.
    let locked: Vec<_> = ["stats-v1.log", "size-v1.log"]
        .map(|name| {
            let path = space.cache().join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
            let file = fs::File::open(path).expect("open");
            file.lock().expect("lock");
            file
        })
        .into();
    let before = space.stats();
    build.outputs.delete_from(&space.work());
    let again = space.run(&Program::Launcher, &space.words(TWO));
    assert_eq!(again.code, 0, "{}", again.stderr_text());
    let other = TWO.replace("out.o", "other.o -DOTHER");
    let again = space.run(&Program::Launcher, &space.words(&other));
    assert_eq!(again.code, 0, "{}", again.stderr_text());
    let stats = space.stats().since(&before);
    assert_eq!(
        (stats.count("direct_hits"), stats.count("built")),
        (1, 1),
        "{stats:?}"
    );
    drop(locked);
}

#[test]
fn a_never_upload_folder_uploads_nothing() {
    let mut space = crate::space("never-upload");
    let far = space.beside("far");
    crate::space::make_dir(&far);
    space.set_env("WARPCC_REMOTE", &format!("file:{}", far.display()));
    fs::write(space.cache().join("never-upload"), "").expect("the marker");
    space.build(TWO);
    let upload = space.warpcc_with(&["remote", "upload"]);
    assert_eq!(upload.code, 0, "{}", upload.stderr_text());
    let files = |path: &Path| {
        open_to_others(path, 0o400)
            .into_iter()
            .filter(|p| p.is_file())
            .count()
    };
    assert_eq!(files(&far), 0, "something was given away");
    // It would have been.
    remove_tree(&space.cache().join("never-upload"));
    space.remove("out.o");
    space.build(&TWO.replace("-c", "-DOTHER -c"));
    let upload = space.warpcc_with(&["remote", "upload"]);
    assert_eq!(upload.code, 0, "{}", upload.stderr_text());
    assert!(files(&far) > 0, "nothing is uploaded at all");
}
