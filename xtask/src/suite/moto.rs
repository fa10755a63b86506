//! moto, which speaks S3's protocol, for the tests of shared caches: a mock, because no registry has a real S3 server that
//! installs in seconds.

use std::path::PathBuf;

use anyhow::Result;

use super::fetched::Fetched;

const MOTO: Fetched = Fetched {
    name: "moto",
    program: "bin/moto_server",
};

/// The folder that Python finds it in.
pub fn packages() -> PathBuf {
    let program = MOTO.path();
    let home = program.parent().and_then(|bin| bin.parent());
    home.map(PathBuf::from).unwrap_or_default()
}

/// Installs it unless it is there.
pub fn install() -> Result<()> {
    MOTO.install_wheels()
}
