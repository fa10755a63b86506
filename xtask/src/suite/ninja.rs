//! Installs the ninja of the jobserver tests: from PyPI, pinned by hash, into a folder of our own. Other projects here are
//! built with the distribution's ninja, which stays as it is.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::fetched::{Fetched, pip_install};
use crate::process;

const NINJA: Fetched = Fetched {
    name: "ninja",
    program: "bin/ninja",
};

/// The path of the installed ninja.
pub fn program() -> PathBuf {
    NINJA.path()
}

/// Installs ninja unless it is there.
pub fn install() -> Result<()> {
    NINJA.install(|home, lock_file| {
        pip_install(home, lock_file)?;
        process::output(Command::new(program()).arg("--version"))
            .context("the wheel was installed but its ninja does not run on this machine")?;
        Ok(())
    })
}
