//! Fetches real CUDA code, builds it with nvcc and twice with warpcc, and compares.
//! `xtask/workloads.toml` lists the workloads, and how each is built.

pub mod catalogue;
pub mod cmake;
mod compare;
pub mod fetch;
mod pid;
pub mod toolkit;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{programs, repo};
use catalogue::{Workload, folder, out};

/// `cargo xtask workloads [NAME…]`.
pub fn main(asked: &[String]) -> Result<()> {
    let names = if asked.is_empty() {
        catalogue::names()?
    } else {
        asked.to_vec()
    };
    let nvcc = pid::make(&programs::nvcc(None)?, &folder().join("toolkit"))?;
    let warpcc = programs::launcher(None)?;
    let mut wrong = Vec::new();
    for name in names {
        if let Err(error) = run(&name, &nvcc, &warpcc) {
            println!("{name}: {error:#}");
            wrong.push(name);
        }
    }
    if !wrong.is_empty() {
        bail!("outputs differ from those of nvcc: {}", wrong.join(", "));
    }
    Ok(())
}

/// Build a workload with `nvcc --keep`, then with warpcc without and with a cache, and
/// print a line for every command and every output. An error when any output differs.
pub fn run(name: &str, nvcc: &Path, warpcc: &Path) -> Result<()> {
    let dir = fetch::workload(name)?;
    let catalogue = catalogue::read()?;
    let entry = catalogue.entry(name)?;
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
    compare::compare(&workload, nvcc, warpcc)
}
