//! The decision on each kind of name.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

#[test]
fn which_outputs_a_new_file_may_replace() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let plain = |name: &str, kind| examine(&at(name), kind).is_ok();
    assert!(plain("absent", ExpectedKind::Data) && plain("absent", ExpectedKind::Program));
    assert!(
        !plain("nowhere/absent", ExpectedKind::Data),
        "its folder is missing"
    );
    for odd in ["", ".", "..", "absent/", "absent/.", "absent/.."] {
        assert!(!plain(odd, ExpectedKind::Data), "{odd:?}");
    }
    // Made as any program makes a file: whatever the umask is, that is how one looks.
    fs::write(at("file"), "").expect("write");
    assert!(plain("file", ExpectedKind::Data));
    assert!(!plain("file", ExpectedKind::Program));
    assert!(!plain("file/below", ExpectedKind::Data));
    for mode in [0o600, 0o755, 0o444, 0o4644] {
        set_mode(&at("file"), mode);
        let there = look_of_new_file(dir.path(), ExpectedKind::Data)
            .expect("a new file")
            .0
            .mode()
            & 0o7777;
        assert_eq!(plain("file", ExpectedKind::Data), mode == there, "{mode:o}");
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o777)
        .open(at("program"))
        .expect("create");
    assert!(plain("program", ExpectedKind::Program));
    assert!(!plain("program", ExpectedKind::Data));

    fs::write(at("one"), "").expect("write");
    fs::hard_link(at("one"), at("two")).expect("link");
    symlink("program", at("to-file")).expect("link");
    symlink("nothing", at("to-nothing")).expect("link");
    symlink("/dev/null", at("to-null")).expect("link");
    fs::create_dir(at("folder")).expect("folder");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("socket");
    let others = ["one", "two", "to-file", "to-nothing", "to-null", "folder"];
    for odd in others.into_iter().chain(["socket", "/dev/null"]) {
        assert!(!plain(odd, ExpectedKind::Data), "{odd}");
        assert!(!plain(odd, ExpectedKind::Program), "{odd}");
    }
    // The way to a file may lead through links.
    symlink("folder", at("to-folder")).expect("link");
    assert!(plain("to-folder/absent", ExpectedKind::Data));
    assert!(!plain("to-folder", ExpectedKind::Data));
}

#[test]
fn a_group_and_mode_that_the_folder_new_files_inherit_are_usual() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("shared");
    fs::create_dir(&folder).expect("folder");
    // Only root can do this; for others the folder stays in their group, and this still must hold.
    let _ = std::os::unix::fs::chown(&folder, None, Some(54321));
    set_mode(&folder, 0o2755);
    fs::write(folder.join("file"), "").expect("write");
    assert!(new_files_inherit(&folder) && !new_files_inherit(dir.path()));
    assert!(examine(&folder.join("file"), ExpectedKind::Data).is_ok());
    assert_eq!(
        fs::read_dir(&folder).expect("list").count(),
        1,
        "nothing left"
    );
}

#[test]
fn one_file_by_two_ways_has_one_name() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("folder")).expect("folder");
    symlink("folder", dir.path().join("link")).expect("link");
    let name = |path: &str| {
        examine(&dir.path().join(path), ExpectedKind::Data)
            .expect("plain")
            .name
    };
    assert_eq!(name("folder/x"), name("link/../folder/./x"));
    assert_eq!(name("folder/x"), name("link/x"));
    assert_ne!(name("folder/x"), name("folder/y"));
}
