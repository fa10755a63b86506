//! The ninja of the jobserver tests: from PyPI, pinned by hash, into a folder of our own, because the one that builds other
//! projects here is the distribution's and stays that.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, repo};

const MARKER: &str = ".warpcc-tool";

fn lock_file() -> PathBuf {
    repo::root().join("xtask/tools/ninja.txt")
}

/// Where it is once it is installed.
pub fn program() -> PathBuf {
    repo::tools_dir().join("ninja/bin/ninja")
}

/// Installs it unless it is there.
pub fn install() -> Result<()> {
    let lock_file = lock_file();
    let wanted = fs::read_to_string(&lock_file)
        .with_context(|| format!("failed to read {}", lock_file.display()))?;
    let tools = repo::tools_dir();
    fs::create_dir_all(&tools).with_context(|| format!("failed to create {}", tools.display()))?;
    let home = tools.join("ninja");
    // Clones may share the folder: whoever waited here finds the work done.
    let lock = File::create(tools.join(".ninja.lock"))
        .with_context(|| format!("failed to lock {}", home.display()))?;
    lock.lock()
        .with_context(|| format!("failed to lock {}", home.display()))?;
    let marker = home.join(MARKER);
    if fs::read_to_string(&marker).is_ok_and(|found| found == wanted)
        && process::is_executable(&program())
    {
        return Ok(());
    }
    if home.exists() {
        // Half of one, or another version.
        fs::remove_dir_all(&home)
            .with_context(|| format!("failed to remove {}", home.display()))?;
    }
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
            .args(["--require-hashes", "--only-binary=:all:", "--no-compile"])
            .args(["--disable-pip-version-check", "--no-warn-script-location"])
            .args(["--root-user-action=ignore", "--no-user", "--target"])
            .arg(&home)
            .arg("-r")
            .arg(&lock_file),
    )
    .with_context(|| format!("failed to install ninja into {}", home.display()))?;
    process::output(Command::new(program()).arg("--version"))
        .context("the wheel was installed but its ninja does not run on this machine")?;
    fs::write(&marker, wanted).with_context(|| format!("failed to write {}", marker.display()))
}
