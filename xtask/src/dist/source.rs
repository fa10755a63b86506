//! The sources of the commit as one archive, for those who build them: recipes of conda-forge and Spack.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::metadata;
use crate::{process, repo};

/// What the archive is called.
pub fn name(version: &str) -> String {
    format!("warpcc-{version}-source.tar.gz")
}

/// Writes it into the folder `to`. Who packs the same commit gets the same bytes.
pub fn make(to: &Path) -> Result<PathBuf> {
    let version = metadata::version()?;
    let file = to.join(name(&version));
    let mut git = Command::new("git");
    git.current_dir(repo::root())
        .args(["-c", "tar.tar.gz.command=gzip -9n"])
        .args(["archive", "--format=tar.gz"])
        .arg(format!("--prefix=warpcc-{version}/"))
        .arg("--output")
        .arg(&file);
    process::run(git.arg("HEAD"))?;
    Ok(file)
}
