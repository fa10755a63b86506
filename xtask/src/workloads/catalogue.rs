//! Reads the list of workloads (`xtask/workloads.toml`), and decides where they are built.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::repo;

/// `xtask/workloads.toml`.
#[derive(Debug, Deserialize)]
pub struct Catalogue {
    /// Archives to fetch.
    pub source: Vec<WorkloadSource>,
    /// The workloads.
    pub workload: Vec<WorkloadRecipe>,
}

impl Catalogue {
    /// The workload of this name.
    pub fn entry(&self, name: &str) -> Result<&WorkloadRecipe> {
        self.workload
            .iter()
            .find(|entry| entry.name == name)
            .with_context(|| {
                let names: Vec<&str> = self.workload.iter().map(|w| w.name.as_str()).collect();
                format!("no workload {name}; there are {}", names.join(", "))
            })
    }
}

/// Where a source comes from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// The index that pip is configured with.
    Pypi,
    /// The registry that cargo is configured with.
    Crate,
    /// The mirrors that apt is configured with.
    Debian,
}

/// One archive.
#[derive(Debug, Deserialize)]
pub struct WorkloadSource {
    /// Its name in its registry.
    pub name: String,
    /// Its registry.
    pub kind: SourceKind,
    /// The file's name, or for a crate `NAME-VERSION`.
    pub file: String,
    /// The hash of the file as the registry sends it.
    pub sha256: String,
}

/// How one workload is built; [`Workload`] explains the fields.
#[derive(Debug, Deserialize)]
pub struct WorkloadRecipe {
    pub name: String,
    pub needs: Vec<String>,
    pub dir: String,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub flags: String,
    pub commands: Vec<String>,
}

/// A fetched workload.
#[derive(Debug)]
pub struct Workload {
    /// Its name in the catalogue.
    pub name: String,
    /// The folder in which its commands run.
    pub dir: PathBuf,
    /// The folder of its outputs, which is emptied between runs.
    pub out: PathBuf,
    /// Variables that its build sets in the environment of nvcc.
    pub env: BTreeMap<String, String>,
    /// Arguments of nvcc, or a program after a `!`.
    pub commands: Vec<Vec<String>>,
}

/// Reads the catalogue.
pub fn read() -> Result<Catalogue> {
    let path = repo::root().join("xtask/workloads.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// Every name in the catalogue.
pub fn names() -> Result<Vec<String>> {
    Ok(read()?.workload.into_iter().map(|w| w.name).collect())
}

/// The folder of everything that is built; git ignores it.
pub fn folder() -> PathBuf {
    repo::root().join(".workloads")
}

/// The folder of a workload's outputs.
pub fn out(name: &str) -> PathBuf {
    folder().join("out").join(name)
}
