//! Whether each crate could be published: what a registry would refuse is found here.

use anyhow::Result;

use crate::process;

/// Packs every crate that may be published, as a registry would get it, and has cargo check the manifests.
///
/// What is packed is not built again: each crate was built where it stands.
pub fn check() -> Result<()> {
    let mut cargo = process::cargo("publish");
    cargo.args(["--workspace", "--dry-run", "--no-verify"]);
    process::run(cargo.args(["--locked", "--allow-dirty"]))
}
