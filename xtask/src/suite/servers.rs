//! Servers that Python runs, for the tests of shared caches and of execution elsewhere: BuildGrid, WsgiDAV, and mocks of S3's
//! and Google Cloud Storage's protocols, because no registry has a real server of either that installs in seconds.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::fetched::Fetched;

const SERVERS: Fetched = Fetched {
    name: "servers",
    program: "bin/bgd",
};

/// The folder in which Python finds the servers.
pub fn packages() -> PathBuf {
    let program = SERVERS.path();
    let home = program.parent().and_then(|bin| bin.parent());
    home.map(PathBuf::from).unwrap_or_default()
}

/// Installs the servers unless they are there, and has Python compile them: each test that starts one would do it again
/// where `PYTHONDONTWRITEBYTECODE` is set, as in images of containers, and wait for it twice as long as the server takes to
/// start.
pub fn install() -> Result<()> {
    SERVERS.install_wheels()?;
    // What is compiled already is left alone. A file that does not compile is one that no server needs: its exit status is 1.
    let mut compile = Command::new("python3");
    compile.args(["-m", "compileall", "-qq"]);
    compile.arg(packages()).status().context("python3")?;
    Ok(())
}
