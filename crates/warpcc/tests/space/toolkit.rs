//! Finds the real nvcc that the tests compare with. It does not run it.

use std::path::PathBuf;

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

impl Toolkit {
    /// All toolkits of the suite. One that is not there is an error, never a skipped
    /// test: a suite that passes without having run nvcc says nothing.
    pub fn all() -> Vec<Self> {
        KNOWN
            .iter()
            .map(|(name, var)| Self::find(name, var))
            .collect()
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

    fn find(name: &'static str, var: &str) -> Self {
        let nvcc = std::env::var_os(var).map_or_else(
            || {
                PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                    .join("../../.toolkits")
                    .join(name)
                    .join("nvidia/cu13/bin/nvcc")
            },
            PathBuf::from,
        );
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
