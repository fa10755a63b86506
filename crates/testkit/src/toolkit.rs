//! The real toolkits that the tests compare with.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::places::{named, root, toolkits};

/// A CUDA toolkit that the tests compare with.
#[derive(Clone, Debug)]
pub struct Toolkit {
    /// Its release, as cases write it: `13.5`.
    pub name: &'static str,
    /// Its compiler driver.
    pub nvcc: PathBuf,
}

/// Release, and the variable that overrides where it is.
const KNOWN: [(&str, &str); 2] = [
    ("13.5", "WARPCC_TEST_NVCC"),
    ("13.0", "WARPCC_TEST_NVCC_130"),
];

/// Lets every test use the toolkit's own headers, when set.
const WHOLE: &str = "WARPCC_TEST_WHOLE_HEADERS";

/// The folder with the tests' small runtime header, in place of which nvcc otherwise reads the toolkit's. `None` where all
/// tests use the toolkit's own.
pub fn small_headers() -> Option<PathBuf> {
    let folder = root().join("crates/warpcc/tests/space/small");
    named(WHOLE).is_none().then_some(folder)
}

impl Toolkit {
    /// All toolkits of the suite. One that is not there is an error, never a skipped
    /// test: a suite that passes without having run nvcc says nothing.
    pub fn all() -> Vec<Self> {
        KNOWN
            .iter()
            .map(|(name, var)| Self::find(name, var))
            .collect()
    }

    /// The newest one, for tests that take long and in which releases have not differed. All of them with
    /// `WARPCC_TEST_ALL_CASES`.
    pub fn chosen() -> Vec<Self> {
        match std::env::var_os("WARPCC_TEST_ALL_CASES") {
            Some(_) => Self::all(),
            None => vec![Self::newest()],
        }
    }

    /// The newest one, for tests about warpcc rather than about a release.
    pub fn newest() -> Self {
        Self::find(KNOWN[0].0, KNOWN[0].1)
    }

    /// The other one.
    pub fn older() -> Self {
        Self::find(KNOWN[1].0, KNOWN[1].1)
    }

    /// The folder above `bin`, as `{toolkit}` in a case's arguments.
    pub fn top(&self) -> PathBuf {
        self.nvcc
            .parent()
            .and_then(|bin| bin.parent())
            .map(PathBuf::from)
            .unwrap_or_default()
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.top().join("bin").join(name))
    }

    /// nvcc in a folder, for tests of what is made of its outputs: their sources need no more than [`small_headers`], with
    /// which it takes a third of the time.
    pub fn nvcc_with_small_headers(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.nvcc);
        command.current_dir(folder);
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
            command.env_remove(name);
        }
        if let Some(headers) = small_headers() {
            command.arg("-I").arg(headers);
        }
        command
    }

    /// Runs nvcc with these words in a folder, with [`small_headers`]; it must succeed.
    pub fn compile(&self, folder: &Path, words: &str) {
        run(self
            .nvcc_with_small_headers(folder)
            .args(words.split_whitespace()));
    }

    fn find(name: &'static str, var: &str) -> Self {
        let nvcc = named(var).unwrap_or_else(|| toolkits().join(name).join("nvidia/cu13/bin/nvcc"));
        // An alias such as /usr/bin/nvcc would make `top` the wrong folder.
        let nvcc = nvcc.canonicalize().unwrap_or_else(|e| {
            panic!(
                "no CUDA {name} toolkit at {} ({e}): run `cargo xtask toolkit`, or set {var}",
                nvcc.display()
            )
        });
        Self { name, nvcc }
    }
}

/// Runs a command that must succeed; gives its output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
