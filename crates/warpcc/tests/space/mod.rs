//! A private folder in which nvcc and warpcc can be run on the same files at the
//! same path, with their own TMPDIR and cache. It does not know what a test expects.
//!
//! The path matters: it stands in the module id, in `__FILE__` and in line tables,
//! so the two never run in two different folders and are then compared.
#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]
#![allow(
    unused_imports,
    reason = "each test binary uses its own part of this module"
)]

mod agree;
mod bytes;
mod known_programs;
mod process;
mod small;
mod snapshot;
mod stats;
mod streams;

pub use agree::Build;
pub use bytes::{Exactness, differences};
pub use process::{Outcome, Program, finish};
pub use small::{hash_small_headers, is_small, small};
pub use snapshot::{Snapshot, SnapshotEntry};
pub use stats::{Stats, TOOLS};
pub use streams::StreamRule;
pub use warpcc_testkit::Toolkit;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The folder of one test. Removed when the test passes, kept and named when it fails.
pub struct TestSpace {
    /// Which real nvcc this test compares with.
    pub toolkit: Toolkit,
    /// The folder below `work` in which commands run.
    pub stand_in: PathBuf,
    root: PathBuf,
    env: Vec<(String, String)>,
}

impl TestSpace {
    /// A fresh space named after the test, with the newest toolkit and a small runtime header.
    pub fn new(name: &str) -> Self {
        Self::with_toolkit(name, small(Toolkit::newest()))
    }

    /// A fresh space with the newest toolkit and its own headers.
    pub fn whole(name: &str) -> Self {
        Self::with_toolkit(name, Toolkit::newest())
    }

    /// A fresh space for one toolkit, with the toolkit's own headers unless it was made small.
    pub fn with_toolkit(name: &str, toolkit: Toolkit) -> Self {
        let space = Self::with_empty_cache(name, toolkit);
        known_programs::put_into(&space);
        space
    }

    /// A fresh space on a machine that has never run warpcc.
    pub fn with_empty_cache(name: &str, toolkit: Toolkit) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}@{}", toolkit.name));
        remove_tree(&root);
        let space = Self {
            toolkit,
            stand_in: PathBuf::new(),
            root,
            env: Vec::new(),
        };
        for dir in [space.work(), space.tmp(), space.cache()] {
            make_dir(&dir);
        }
        space
    }

    /// Where commands run.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// TMPDIR of every command: it must be empty again afterwards.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// WARPCC_DIR. Not inside `tmp`, so that leftovers there are seen.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// A folder beside the others, for what is neither input nor output.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Set a variable for every later command of both compilers.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.retain(|(n, _)| n != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Remove a variable set with [`Self::set_env`].
    pub fn unset_env(&mut self, name: &str) {
        self.env.retain(|(n, _)| n != name);
    }

    /// Write a file of the work folder, making its folders.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        if let Some(parent) = path.parent() {
            make_dir(parent);
        }
        fs::write(&path, text).unwrap_or_else(|e| panic!("writing {}: {e}", path.display()));
    }

    /// Set a file's modification time to one fixed day. Release 13.0 writes the
    /// source's time into the line table of `-lineinfo` and `-G`, so two runs on two
    /// copies would differ.
    pub fn set_old(&self, name: &str) {
        let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let path = self.work().join(name);
        fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(day))
            .unwrap_or_else(|e| panic!("setting the time of {}: {e}", path.display()));
    }

    /// Write an executable script of the work folder.
    pub fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        let path = self.work().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .unwrap_or_else(|e| panic!("chmod {}: {e}", path.display()));
    }

    /// Make a symbolic link in the work folder, replacing one that is there.
    pub fn link(&self, name: &str, target: &str) {
        self.remove(name);
        let path = self.work().join(name);
        symlink(self.fill(target), &path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Give a file a new modification time and leave its bytes alone.
    pub fn touch(&self, name: &str) {
        let path = self.work().join(name);
        fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()))
            .unwrap_or_else(|e| panic!("touching {}: {e}", path.display()));
    }

    /// The bytes of a file of the work folder.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.work().join(name);
        fs::read(&path).unwrap_or_else(|e| panic!("reading {}: {e}", path.display()))
    }

    /// Does the work folder hold this file?
    pub fn exists(&self, name: &str) -> bool {
        self.work().join(name).symlink_metadata().is_ok()
    }

    /// Delete a file or folder of the work folder.
    pub fn remove(&self, name: &str) {
        remove_tree(&self.work().join(name));
    }

    /// Empty the cache, but for what a fresh space has.
    pub fn clear_cache(&self) {
        remove_tree(&self.cache());
        make_dir(&self.cache());
        known_programs::put_into(self);
    }

    /// Empty the work folder and make it anew at the same path.
    pub fn clear_work(&self) {
        remove_tree(&self.work());
        make_dir(&self.work());
    }

    /// Names left in TMPDIR: empty after every finished command. A failing cicc leaves
    /// a `…lgenfe.bc` there under plain nvcc too; those are not counted.
    pub fn leftovers(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.tmp())
            .map(|dir| {
                dir.flatten()
                    .map(|e| e.file_name().to_string_lossy().into_owned())
                    .filter(|name| !name.ends_with(".lgenfe.bc"))
                    .collect()
            })
            .unwrap_or_default();
        names.sort();
        names
    }

    /// Fail when a command left something in TMPDIR.
    pub fn demand_no_leftovers(&self, after: &str) {
        let names = self.leftovers();
        assert!(names.is_empty(), "{after} left in TMPDIR: {names:?}");
    }
}

impl Drop for TestSpace {
    #[allow(clippy::print_stderr, reason = "tells a person where to look")]
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("WARPCC_TEST_KEEP").is_some() {
            eprintln!("kept for a look: {}", self.root.display());
        } else {
            remove_tree(&self.root);
        }
    }
}

/// `mkdir -p`, or fail with the path.
pub fn make_dir(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|e| panic!("creating {}: {e}", path.display()));
}

/// Remove a file, link or folder; what is not there is fine.
pub fn remove_tree(path: &Path) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    // A process that dies right now may still put something into the folder.
    let mut result = Ok(());
    for _ in 0..50 {
        result = if meta.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        match &result {
            Err(e) if e.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            _ => break,
        }
    }
    result.unwrap_or_else(|e| panic!("removing {}: {e}", path.display()));
}
