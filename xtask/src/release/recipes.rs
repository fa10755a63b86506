//! Recipes for conda-forge and Spack, for the archive of sources that this release has. Nix builds a checkout, and takes
//! its version from Cargo.toml.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::dist::metadata;
use crate::repo;

/// In the repository's folder `packaging`, and in the folder that is made.
const RECIPES: [&str; 2] = ["conda-forge/recipe.yaml", "spack/package.py"];

/// Writes them into the folder `to`, for the archive `source`.
pub fn fill(to: &Path, version: &str, repository: &str, source: &Path) -> Result<()> {
    let bytes = fs::read(source).with_context(|| format!("failed to read {}", source.display()))?;
    let sum = metadata::sha256(&bytes);
    for recipe in RECIPES {
        let template = repo::root().join("packaging").join(recipe);
        let text = fs::read_to_string(&template)
            .with_context(|| format!("failed to read {}", template.display()))?;
        let file = to.join(recipe);
        let folder = file.parent().context("a recipe is in a folder")?;
        fs::create_dir_all(folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        fs::write(&file, filled(&text, version, repository, &sum))
            .with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(())
}

fn filled(text: &str, version: &str, repository: &str, sum: &str) -> String {
    text.replace("@VERSION@", version)
        .replace("@REPOSITORY@", repository)
        .replace("@SHA256@", sum)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process;

    #[test]
    fn nothing_is_left_to_fill_in() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let source = folder.path().join("source.tar.gz");
        fs::write(&source, "")?;
        fill(
            folder.path(),
            "1.2.3",
            "https://example.org/warpcc",
            &source,
        )?;
        // The hash of no bytes.
        let sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for recipe in RECIPES {
            let text = fs::read_to_string(folder.path().join(recipe))?;
            assert!(text.contains("1.2.3") && text.contains(sum), "{text}");
            assert!(text.contains("https://example.org/warpcc/"), "{text}");
            for left in ["@VERSION@", "@REPOSITORY@", "@SHA256@"] {
                assert!(!text.contains(left), "{text}");
            }
        }
        let spack = folder.path().join(RECIPES[1]);
        process::run(
            Command::new("python3")
                .args(["-m", "py_compile"])
                .arg(spack),
        )
    }

    #[test]
    fn recipes_need_the_rust_that_the_workspace_needs() -> Result<()> {
        let manifest: toml::Table = fs::read_to_string(repo::root().join("Cargo.toml"))?.parse()?;
        let rust = manifest["workspace"]["package"]["rust-version"]
            .as_str()
            .context("it is text")?
            .to_owned();
        let spack = repo::root().join("packaging").join(RECIPES[1]);
        assert!(fs::read_to_string(spack)?.contains(&format!("rust@{rust}:")));
        Ok(())
    }
}
