//! An attempt that fails is a look: it says that a folder or a name is missing, or there. A changed mode is a write.

use crate::support::{Bench, has};

/// Each shell command fails because of what it shows to be missing.
#[test]
fn what_cannot_be_made_shows_that_its_folder_is_missing() {
    for command in [
        "echo > gone/x",
        "echo >> gone/deep/x",
        "mkdir gone/x",
        "mkfifo gone/x",
        "ln -s a gone/x",
        "touch gone/x",
        "truncate -s 1 gone/x",
    ] {
        let bench = Bench::new();
        bench
            .file("a", "")
            .file("script", &format!("{command} 2> said\nexit 0\n"));
        let seen = bench.watch("/bin/sh script");
        let folder = if command.contains("deep") {
            "gone/deep"
        } else {
            "gone"
        };
        assert!(has(&seen.missing, folder), "{command}: {seen:?}");
    }
}

#[test]
fn what_cannot_be_removed_or_made_again_shows_what_is_there() {
    let bench = Bench::new();
    bench.file("a", "").file("full/x", "");
    bench.file(
        "script",
        "rmdir gone; rmdir full; unlink lost; mkdir full; ln a full/x; exit 0\n",
    );
    let seen = bench.watch("/bin/sh script");
    assert!(
        has(&seen.missing, "gone") && has(&seen.missing, "lost"),
        "{seen:?}"
    );
    assert!(has(&seen.listed, "full"), "{seen:?}");
    assert!(
        has(&seen.found, "full") && has(&seen.found, "full/x"),
        "{seen:?}"
    );
    assert_eq!(seen.untracked, None);
}

/// mold first gives the old program another name, which is not there at first.
#[test]
fn a_file_that_cannot_be_renamed_shows_what_is_missing() {
    let bench = Bench::new();
    let tries = |call: &str| format!("try:\n  os.{call}\nexcept FileNotFoundError:\n  pass\n");
    let calls = [
        "rename('lost', 'b')",
        "link('lost too', 'b')",
        "rename('a', 'gone/b')",
    ];
    let text = calls.map(tries).concat();
    bench
        .file("a", "")
        .file("script", &format!("import os\n{text}"));
    let seen = bench.watch("/usr/bin/python3 -IS script");
    for name in ["lost", "lost too", "gone"] {
        assert!(has(&seen.missing, name), "{name}: {seen:?}");
    }
    assert!(has(&seen.nothing, "lost"), "{seen:?}");
    assert_eq!(seen.untracked, None);
}

#[test]
fn a_changed_mode_owner_or_time_is_a_write() {
    for command in [
        "chmod 700 a",
        "touch -d 2020-01-01 -c a",
        "chown 0 a",
        "truncate -s 1 a",
    ] {
        let bench = Bench::new();
        bench
            .file("a", "")
            .file("script", &format!("{command}; exit 0\n"));
        let seen = bench.watch("/bin/sh script");
        assert!(has(&seen.written, "a"), "{command}: {seen:?}");
    }
}
