//! Servers that Python runs, for the tests of shared caches and of execution elsewhere: BuildGrid, WsgiDAV, and mocks of S3's
//! and Google Cloud Storage's protocols, because no registry has a real server of either that installs in seconds.

use std::path::PathBuf;

use anyhow::Result;

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

/// Installs the servers unless they are there.
pub fn install() -> Result<()> {
    SERVERS.install_wheels()
}
