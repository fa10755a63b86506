//! What cargo and git know of this checkout: its version, its commit, and the crates that programs are linked from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::{process, repo};

/// A crate that a program is linked from.
#[derive(Deserialize)]
pub struct Package {
    id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub description: Option<String>,
    repository: Option<String>,
    /// Nothing for our own.
    pub source: Option<String>,
    pub manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<PackageNode>,
}

#[derive(Deserialize)]
struct PackageNode {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

fn metadata(options: &[&str]) -> Result<Metadata> {
    let mut command = process::cargo("metadata");
    command.args(["--locked", "--format-version", "1"]);
    let text = process::output(command.args(options))?;
    serde_json::from_str(&text).context("cargo's metadata is not as expected")
}

/// The crate of the program.
fn warpcc() -> Result<Package> {
    let known = metadata(&["--no-deps"]).or_else(|_| metadata(&[]))?;
    let ours = known
        .packages
        .into_iter()
        .find(|package| package.name == "warpcc");
    ours.context("there is no crate warpcc")
}

/// The version of the program.
pub fn version() -> Result<String> {
    Ok(warpcc()?.version)
}

/// The address of the repository in Cargo.toml.
pub fn repository() -> Result<String> {
    let address = warpcc()?.repository;
    address.context("Cargo.toml names no repository")
}

/// Whether an address can be that of a repository: names that end in `.invalid` never exist (RFC 6761).
pub fn is_public(address: &str) -> bool {
    let host = address
        .split_once("://")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    host.is_some_and(|host| !host.is_empty() && !host.ends_with(".invalid"))
}

/// What is linked into `programs` on `target`, ours included: neither build scripts' crates nor the tests'.
pub fn linked(programs: &[&str], target: &str) -> Result<Vec<Package>> {
    let known = metadata(&["--filter-platform", target])?;
    let nodes: BTreeMap<&str, &PackageNode> = known
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = known
        .packages
        .iter()
        .filter(|package| package.source.is_none() && programs.contains(&package.name.as_str()))
        .map(|package| package.id.as_str())
        .collect();
    while let Some(id) = waiting.pop() {
        if !reached.insert(id.to_owned()) {
            continue;
        }
        let deps = nodes.get(id).map_or(&[][..], |node| &node.deps);
        let normal = deps
            .iter()
            .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        waiting.extend(normal.map(|dep| dep.pkg.as_str()));
    }
    let mut packages = known.packages;
    packages.retain(|package| reached.contains(&package.id));
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(packages)
}

/// The commit that is checked out, with a `+` where files differ from it; nothing without git.
pub fn commit() -> Option<String> {
    let git = |words: &[&str]| {
        process::output(Command::new("git").current_dir(repo::root()).args(words)).ok()
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(match changed.trim() {
        "" => commit,
        _ => commit + "+",
    })
}

/// When that was made, in seconds since 1970.
pub fn time_of_commit() -> Result<u64> {
    let mut git = Command::new("git");
    git.current_dir(repo::root())
        .args(["log", "-1", "--format=%ct"]);
    let time = process::output(&mut git)?;
    time.trim().parse().context("git gave no time")
}

/// As `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_not_public() {
        assert!(is_public("https://example.org/warpcc"));
        assert!(!is_public("https://repository.invalid/warpcc"));
        assert!(!is_public("warpcc"));
        assert!(!is_public("https://"));
    }
}
