//! The two programs that demo and benchmarks compare: the user's nvcc, and our warpcc with the programs next to it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{process, repo, toolkit};

/// The nvcc to use: the one asked for, `WARPCC_NVCC`, the one on PATH, `CUDA_HOME`'s, or else a
/// toolkit from PyPI.
pub fn nvcc(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(nvcc) = asked {
        return named(nvcc, "--nvcc");
    }
    if let Some(nvcc) = env::var_os("WARPCC_NVCC") {
        return named(Path::new(&nvcc), "WARPCC_NVCC");
    }
    if let Some(nvcc) = process::on_path("nvcc") {
        return Ok(nvcc);
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env::var_os);
    let mut theirs = homes.map(|home| Path::new(&home).join("bin/nvcc"));
    if let Some(nvcc) = theirs.find(|nvcc| process::is_executable(nvcc)) {
        return Ok(nvcc);
    }
    toolkit::install(toolkit::NEWEST).context("there is no nvcc here, and none could be installed")
}

/// Our programs: the first is warpcc, which finds the second beside itself.
pub const OURS: [&str; 2] = ["warpcc", "warpcc-remote"];

/// The warpcc to use for calls that reach no server: the one asked for, or this checkout's, built now.
pub fn launcher(asked: Option<&Path>) -> Result<PathBuf> {
    // The network alone takes longer to build than all else.
    asked_or_built(asked, &OURS[..1])
}

/// As [`launcher`], with the program that reaches servers next to it.
pub fn warpcc(asked: Option<&Path>) -> Result<PathBuf> {
    asked_or_built(asked, &OURS)
}

fn asked_or_built(asked: Option<&Path>, programs: &[&str]) -> Result<PathBuf> {
    if let Some(warpcc) = asked {
        return named(warpcc, "--warpcc");
    }
    let mut build = process::cargo("build");
    build.arg("--release");
    for program in programs {
        build.args(["--package", program]);
    }
    process::run(&mut build)?;
    Ok(repo::target_dir().join("release/warpcc"))
}

/// A program that the user named, as an absolute path: we run it from other folders.
fn named(program: &Path, by: &str) -> Result<PathBuf> {
    if !process::is_executable(program) {
        bail!("{by} names {}, which is not a program", program.display());
    }
    std::path::absolute(program).with_context(|| format!("failed to find {}", program.display()))
}

/// nvcc's options for one image per architecture.
pub fn gencode(archs: &[String]) -> Vec<String> {
    archs
        .iter()
        .map(|arch| format!("-gencode=arch=compute_{arch},code=sm_{arch}"))
        .collect()
}
