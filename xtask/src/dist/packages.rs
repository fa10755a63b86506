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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dist::extras::LICENCES;
    use crate::repo;

    /// A crate in a registry has only the files of its folder.
    #[test]
    fn every_crate_brings_what_a_reader_of_it_asks_for() -> Result<()> {
        let mut checked = 0;
        for entry in fs::read_dir(repo::root().join("crates"))? {
            let folder = entry?.path();
            let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml"))?.parse()?;
            let package = &manifest["package"];
            if package.get("publish").and_then(toml::Value::as_bool) == Some(false) {
                continue;
            }
            checked += 1;
            let name = folder.display();
            assert!(package["description"].as_str().is_some(), "{name}");
            for inherited in ["license", "repository", "readme", "keywords"] {
                let field = package.get(inherited);
                let inherits = field.and_then(|field| field.get("workspace"));
                assert!(inherits.is_some(), "{name}: {inherited}.workspace = true");
            }
            for licence in LICENCES {
                let ours = fs::read_to_string(folder.join(licence)).unwrap_or_default();
                let wanted = fs::read_to_string(repo::root().join(licence))?;
                assert_eq!(ours, wanted, "{name}: ln -s ../../{licence}");
            }
        }
        assert!(checked > 0);
        Ok(())
    }
}
