//! Fetches wheels with known hashes from PyPI, without installing them.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// Downloads the wheels that `requirements` names, with their hashes, into `to`: those for `platform`, independent of the
/// Python here.
pub fn download(requirements: &Path, platform: &str, to: &Path) -> Result<()> {
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-input"])
            .args(["--no-deps", "--require-hashes", "--only-binary=:all:"])
            .args(["--disable-pip-version-check", "--platform", platform])
            // The programs and libraries that are taken out of the wheels do not need their Python.
            .args(["--python-version", "3.11", "--implementation", "cp"])
            .arg("--dest")
            .arg(to)
            .arg("-r")
            .arg(requirements),
    )
}
