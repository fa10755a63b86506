//! maturin, which makes the wheel of the Python package, and NumPy, for the tests of that package.

use std::path::PathBuf;

use anyhow::Result;

use super::fetched::Fetched;

const MATURIN: Fetched = Fetched {
    name: "maturin",
    program: "bin/maturin",
};

/// The folder in which Python finds both.
pub fn packages() -> PathBuf {
    let program = MATURIN.path();
    let home = program.parent().and_then(|bin| bin.parent());
    home.map(PathBuf::from).unwrap_or_default()
}

/// Installs both unless they are there.
pub fn install() -> Result<()> {
    MATURIN.install_wheels()
}
