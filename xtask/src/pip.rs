//! Wheels from PyPI whose hashes are known, fetched but not installed.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// Downloads what `requirements` names, with its hashes, into `to`: as `platform` gets it, whatever Python there is here.
pub fn download(requirements: &Path, platform: &str, to: &Path) -> Result<()> {
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-input"])
            .args(["--no-deps", "--require-hashes", "--only-binary=:all:"])
            .args(["--disable-pip-version-check", "--platform", platform])
            // No program or library that is taken out of them needs the Python they are for.
            .args(["--python-version", "3.11", "--implementation", "cp"])
            .arg("--dest")
            .arg(to)
            .arg("-r")
            .arg(requirements),
    )
}
