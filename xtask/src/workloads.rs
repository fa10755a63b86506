//! Real CUDA code: fetch it, build it with nvcc and twice with warpcc, and compare.
//! What there is and how it is built stands in `xtask/workloads.toml`.

use crate::{programs, repo, workloads_compare, workloads_fetch, workloads_pid};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `xtask/workloads.toml`.
#[derive(Debug, Deserialize)]
pub struct Catalogue {
    /// Archives to fetch.
    pub source: Vec<Source>,
    workload: Vec<Entry>,
}

/// Where a source comes from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The index that pip is configured with.
    Pypi,
    /// The registry that cargo is configured with.
    Crate,
    /// The mirrors that apt is configured with.
    Debian,
}

/// One archive.
#[derive(Debug, Deserialize)]
pub struct Source {
    /// Its name in its registry.
    pub name: String,
    /// Its registry.
    pub kind: Kind,
    /// The file's name, or for a crate `NAME-VERSION`.
    pub file: String,
    /// Of the file as the registry sends it.
    pub sha256: String,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    needs: Vec<String>,
    dir: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    flags: String,
    commands: Vec<String>,
}

/// A fetched workload.
#[derive(Debug)]
pub struct Workload {
    /// As in the catalogue.
    pub name: String,
    /// Where its commands run.
    pub dir: PathBuf,
    /// Where its outputs go; emptied between runs.
    pub out: PathBuf,
    /// What its build sets in the environment of nvcc.
    pub env: BTreeMap<String, String>,
    /// Arguments of nvcc, or a program after a `!`.
    pub commands: Vec<Vec<String>>,
}

/// `cargo xtask workloads [NAME…]`.
pub fn main(asked: &[String]) -> Result<()> {
    let names = if asked.is_empty() {
        names()?
    } else {
        asked.to_vec()
    };
    let nvcc = workloads_pid::make(&programs::nvcc(None)?, &folder().join("toolkit"))?;
    let warpcc = programs::warpcc(None)?;
    let mut wrong = Vec::new();
    for name in names {
        if let Err(error) = run(&name, &nvcc, &warpcc) {
            println!("{name}: {error:#}");
            wrong.push(name);
        }
    }
    if !wrong.is_empty() {
        bail!("not as nvcc builds them: {}", wrong.join(", "));
    }
    Ok(())
}

/// The folder of everything that is built; git ignores it.
pub fn folder() -> PathBuf {
    repo::root().join(".workloads")
}

/// Every name in the catalogue.
pub fn names() -> Result<Vec<String>> {
    Ok(catalogue()?.workload.into_iter().map(|w| w.name).collect())
}

/// Fetch what a workload needs and return the folder its commands run in.
pub fn fetch(name: &str) -> Result<PathBuf> {
    let catalogue = catalogue()?;
    let entry = entry(&catalogue, name)?;
    for needed in &entry.needs {
        let source = catalogue
            .source
            .iter()
            .find(|source| &source.name == needed)
            .with_context(|| format!("workload {name} needs {needed}, which is no source"))?;
        workloads_fetch::fetch(source, &repo::sources_dir())
            .with_context(|| format!("fetching {needed}"))?;
    }
    let out = out(name);
    let dir = repo::sources_dir().join(entry.dir.replace("{out}", &out.to_string_lossy()));
    // The folder of outputs is made, and emptied, before each build.
    if dir != out && !dir.is_dir() {
        bail!("{} is not in what was fetched for {name}", dir.display());
    }
    Ok(dir)
}

fn out(name: &str) -> PathBuf {
    folder().join("out").join(name)
}

/// Build a workload with `nvcc --keep`, then with warpcc without and with a cache, and
/// print a line for every command and every output. An error when any output differs.
pub fn run(name: &str, nvcc: &Path, warpcc: &Path) -> Result<()> {
    let dir = fetch(name)?;
    let catalogue = catalogue()?;
    let entry = entry(&catalogue, name)?;
    let out = out(name);
    let toolkit = nvcc.ancestors().nth(2).unwrap_or(nvcc);
    let fill = |text: &str| {
        text.replace("{w}", &repo::sources_dir().to_string_lossy())
            .replace("{out}", &out.to_string_lossy())
            .replace("{toolkit}", &toolkit.to_string_lossy())
    };
    let commands = entry
        .commands
        .iter()
        .map(|line| {
            let line = match line.strip_prefix('=') {
                Some(whole) => fill(whole),
                None if line.starts_with('!') => fill(line),
                None => fill(&format!("{} {line}", entry.flags)),
            };
            shlex::split(&line).with_context(|| format!("unbalanced quotes in {line}"))
        })
        .collect::<Result<_>>()?;
    let workload = Workload {
        name: entry.name.clone(),
        dir,
        out,
        env: entry.env.clone(),
        commands,
    };
    workloads_compare::compare(&workload, nvcc, warpcc)
}

fn entry<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Entry> {
    catalogue
        .workload
        .iter()
        .find(|entry| entry.name == name)
        .with_context(|| {
            let names: Vec<&str> = catalogue.workload.iter().map(|w| w.name.as_str()).collect();
            format!("no workload {name}; there are {}", names.join(", "))
        })
}

fn catalogue() -> Result<Catalogue> {
    let path = repo::root().join("xtask/workloads.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}
