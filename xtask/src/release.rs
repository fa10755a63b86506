//! `cargo xtask release`: everything that a release consists of, made and checked; what is left is to publish it.
//!
//! It publishes nothing and makes no tag: its last lines are the commands that do.

mod changelog;
mod notes;
mod previous;
mod recipes;
mod signature;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::bench::machine_info;
use crate::dist::{self, metadata};
use crate::{matrix, repo};

const CHANGELOG: &str = "CHANGELOG.md";

/// How to make it.
#[derive(clap::Args)]
pub struct ReleaseOptions {
    /// Change nothing but dist/: the new CHANGELOG.md goes there too. Files may differ from the commit
    #[arg(long)]
    dry_run: bool,
    /// Sign the checksums with this key of OpenSSH
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The release whose cache is read: its folder or tarball, or its tag or commit, which is then built [default: the newest
    /// tag v*]
    #[arg(long, value_name = "FILE_OR_TAG")]
    previous: Option<String>,
    /// This release begins with an empty cache, and the changelog says so
    #[arg(long)]
    new_cache_format: bool,
    /// Pack this program, which is already built, and the other one next to it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// `cargo xtask release`.
pub fn main(options: &ReleaseOptions) -> Result<()> {
    let version = metadata::version()?;
    let commit = metadata::commit()
        .context("a release is made from a commit, but this is not a git checkout")?;
    let address = metadata::repository()?;
    if !options.dry_run {
        ready(&commit, &address)?;
    }
    let text = fs::read_to_string(repo::root().join(CHANGELOG))
        .with_context(|| format!("failed to read {CHANGELOG}"))?;
    let section = changelog::unreleased(&text)?;
    let date = machine_info::date()?;
    let changed = changelog::released(&text, &version, &date)?;

    println!("── files");
    let folder = dist::folder();
    if folder.exists() {
        // The checksums are of all that is in it.
        fs::remove_dir_all(&folder)
            .with_context(|| format!("failed to empty {}", folder.display()))?;
    }
    dist::all(options.program.as_deref())?;

    println!("── the programs in them");
    let unpacked = dist::unpack_tarball(&folder, &version)?;
    let warpcc = unpacked.path().join("bin/warpcc");
    matrix::quick(Some(&warpcc))?;

    println!("── the cache of the previous release");
    let expected = match options.new_cache_format {
        true => previous::OldCacheUse::Ignored,
        false => previous::OldCacheUse::Read,
    };
    previous::check(options.previous.as_deref(), &warpcc, expected)?;

    println!("── changelog, notes, recipes, checksums");
    let source = folder.join(dist::source_name(&version));
    recipes::fill(&folder.join("recipes"), &version, &address, &source)?;
    dist::checksums(&folder)?;
    let sums = folder.join("SHA256SUMS");
    notes::write(&folder, &version, &date, section)?;
    match &options.key {
        Some(key) => println!("signed: {}", signature::sign(key, &sums)?.display()),
        None => println!("not signed: no --key"),
    }
    let changelog_file = match options.dry_run {
        true => folder.join(CHANGELOG),
        false => repo::root().join(CHANGELOG),
    };
    fs::write(&changelog_file, changed)
        .with_context(|| format!("failed to write {}", changelog_file.display()))?;
    println!("\nwritten: {}", changelog_file.display());
    match options.dry_run {
        true => println!("nothing in the repository was changed, and nothing was published"),
        false => print_next(&version, &address),
    }
    Ok(())
}

/// Checks the conditions for a release before any file is made.
fn ready(commit: &str, address: &str) -> Result<()> {
    if commit.ends_with('+') {
        bail!("files differ from the commit: commit them, or try with --dry-run");
    }
    if !metadata::is_public(address) {
        bail!(
            "{address} is no public address: set `repository` in Cargo.toml, which crates, packages and recipes name"
        );
    }
    Ok(())
}

fn print_next(version: &str, address: &str) {
    println!(
        "nothing was published. What is left:\n  \
         git commit --message 'warpcc {version}' {CHANGELOG} && git tag --annotate v{version}\n  \
         cargo publish --workspace\n  \
         python3 -m twine upload dist/warpcc-{version}-py3-*.whl\n  \
         and the files of dist/, with NOTES.md as text, to {address}/releases",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_get_is_a_commit_and_says_where_its_sources_are() {
        let public = "https://example.org/warpcc";
        assert!(ready("0123456789ab", "https://repository.invalid/warpcc").is_err());
        assert!(ready("0123456789ab", public).is_ok());
        assert!(ready("0123456789ab+", public).is_err());
    }
}
