//! Runs real tools with the library preloaded, in a directory of their own.
#![allow(dead_code)] // Each test binary uses a part of it.
#![allow(clippy::unwrap_used)] // Test helpers: the setting of clippy.toml covers test functions only.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use warpcc_watch::{Observed, PathText, environment, install, read_log};

/// A directory with the library and a log in it, next to the files of the test.
pub struct Bench {
    pub dir: TempDir,
    library: PathBuf,
}

impl Bench {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let library = install(dir.path()).unwrap();
        Self { dir, library }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn command(&self, words: &str) -> Command {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .current_dir(self.dir.path())
            .env_remove("LD_PRELOAD")
            .env("LC_ALL", "C");
        command
    }

    pub fn watched(&self, words: &str) -> Command {
        self.watched_with(words, None)
    }

    pub fn watched_with(&self, words: &str, preload: Option<&OsStr>) -> Command {
        let mut command = self.command(words);
        command.envs(environment(&self.library, &self.path("log"), preload).unwrap());
        command
    }

    /// The observations of a run that began as `program`.
    pub fn log_of(&self, program: &str) -> Observed {
        let program = if program.starts_with('/') {
            program.into()
        } else if program.contains('/') {
            self.path(program)
        } else {
            Path::new("/usr/bin").join(program)
        };
        read_log(&std::fs::read(self.path("log")).unwrap(), &program, &|_| {
            false
        })
        .unwrap()
    }

    /// Runs a command that must succeed and whose log must be complete.
    pub fn watch(&self, words: &str) -> Observed {
        // One log is of one run.
        let _ = std::fs::remove_file(self.path("log"));
        let output = self.watched(words).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        let observed = self.log_of(words.split(' ').next().unwrap());
        assert_eq!(observed.untracked, None);
        observed
    }

    pub fn plain(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }
}

/// Paths that are looked for in sets, and in maps by their keys.
pub trait Paths {
    fn holds(&self, path: &Path) -> bool;
}

impl Paths for std::collections::BTreeSet<PathText> {
    fn holds(&self, path: &Path) -> bool {
        self.contains(path.as_os_str())
    }
}

impl<V> Paths for std::collections::BTreeMap<PathText, V> {
    fn holds(&self, path: &Path) -> bool {
        self.contains_key(path.as_os_str())
    }
}

pub fn has(paths: &impl Paths, path: impl AsRef<Path>) -> bool {
    paths.holds(path.as_ref())
}
