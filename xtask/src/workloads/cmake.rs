//! Tests a real CMake + Ninja project, llama.cpp's ggml, with warpcc as its compiler launcher. The
//! project is configured, built, touched, edited, cleaned and rebuilt as by a user. Each time the
//! cache's answers and the files that ninja rebuilds are checked. At the end every object and
//! dependency file is compared with nvcc's. Then all this runs again with warpcc in nvcc's place.

mod build_folder;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{catalogue, fetch, toolkit};
use crate::{process, programs};
use build_folder::{Build, ExpectedCounts};

/// The files to build, and the warpcc to build them with.
#[derive(clap::Args)]
pub struct CmakeOptions {
    /// Three of the files, for CI
    #[arg(long)]
    quick: bool,
    /// A warpcc that is already built (else this checkout's is, by cargo)
    #[arg(long, value_name = "PATH")]
    warpcc: Option<PathBuf>,
}

/// Small files of ggml-cuda; `scale` must be among them, because its header is edited.
const QUICK: [&str; 3] = ["fill", "scale", "clamp"];
const FULL: [&str; 10] = [
    "fill", "scale", "clamp", "arange", "set", "sum", "softcap", "diagmask", "acc", "pad",
];

/// A header that one of our files includes. Every file includes `WIDE`.
const NARROW: &str = "ggml/src/ggml-cuda/scale.cuh";
const WIDE: &str = "ggml/src/ggml-cuda/common.cuh";

/// A project of our own, because ggml's needs tests and examples that the sdist leaves out.
const PROJECT: &str = "cmake_minimum_required(VERSION 3.18)\n\
                       project(ggml_with_warpcc C CXX)\n\
                       add_subdirectory(ggml)\n";

/// `cargo xtask cmake-project`.
pub fn main(options: &CmakeOptions) -> Result<()> {
    let files: &[&str] = if options.quick { &QUICK } else { &FULL };
    let warpcc = programs::launcher(options.warpcc.as_deref())?;
    check(&programs::nvcc(None)?, &warpcc, files)
}

/// The quick test, for a suite that has its own nvcc and warpcc.
pub fn quick(nvcc: &Path, warpcc: &Path) -> Result<()> {
    check(nvcc, warpcc, &QUICK)
}

fn check(nvcc: &Path, warpcc: &Path, files: &[&str]) -> Result<()> {
    for (program, package) in [("cmake", "cmake"), ("ninja", "ninja-build")] {
        ensure!(
            process::on_path(program).is_some(),
            "there is no {program} on PATH (Debian: apt-get install {package})"
        );
    }
    let sources = fetch::workload("llama.cpp")?;
    let ggml = sources.ancestors().nth(2).context("ggml-cuda is in ggml")?;
    let root = catalogue::folder().join("cmake-project");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
    }
    fs::create_dir_all(root.join("src"))?;
    // A copy, because headers are edited.
    process::run(
        Command::new("cp")
            .arg("-r")
            .arg(ggml)
            .arg(root.join("src/ggml")),
    )?;
    fs::write(root.join("src/CMakeLists.txt"), PROJECT)?;
    let toolkit = root.join("toolkit");
    toolkit::make(nvcc, &toolkit)?;
    fs::create_dir(root.join("masquerade"))?;
    symlink(warpcc, root.join("masquerade/nvcc"))?;

    let mut launched = Build::new(&root, "launched", warpcc, files);
    launched.configure(
        &toolkit.join("bin/nvcc"),
        &[format!(
            "-DCMAKE_CUDA_COMPILER_LAUNCHER={}",
            warpcc.display()
        )],
    )?;
    proof(&mut launched)?;

    let mut masked = Build::new(&root, "masked", warpcc, files);
    masked.path = Some(path_before(&[
        root.join("masquerade"),
        toolkit.join("bin"),
    ])?);
    masked.configure(&root.join("masquerade/nvcc"), &[])?;
    masked.ninja("warpcc named nvcc", &ExpectedCounts::direct(files.len()))?;
    masked.same_as(&launched.outputs()?)?;
    masked.dry("nothing to do", &[])
}

/// Changes a build folder as a day's work does, and checks each build.
fn proof(build: &mut Build) -> Result<()> {
    let all = build.files.clone();
    let one = ["scale".to_owned()];
    build.ninja("cold", &ExpectedCounts::built(all.len()))?;
    let first = build.outputs()?;
    build.dry("nothing to do", &[])?;

    build.touch(NARROW)?;
    build.dry("one header touched", &one)?;
    build.ninja("one header touched", &ExpectedCounts::direct(1))?;
    build.touch(WIDE)?;
    build.dry("a header of all touched", &all)?;
    build.ninja(
        "a header of all touched",
        &ExpectedCounts::direct(all.len()),
    )?;
    build.same_as(&first)?;

    build.replace(NARROW, "BLOCK_SIZE 256", "BLOCK_SIZE 128")?;
    build.dry("one header edited", &one)?;
    build.ninja("one header edited", &ExpectedCounts::built(1))?;
    ensure!(
        build.outputs()? != first,
        "{NARROW} was edited, but no object has changed"
    );
    build.compare_with_nvcc("edited", &one)?;
    build.replace(NARROW, "BLOCK_SIZE 128", "BLOCK_SIZE 256")?;
    build.ninja("the edit undone", &ExpectedCounts::direct(1))?;
    build.same_as(&first)?;

    build.clean()?;
    build.ninja("cleaned", &ExpectedCounts::direct(all.len()))?;
    build.same_as(&first)?;
    build.dry("nothing to do", &[])?;
    build.compare_with_nvcc("all", &all)?;
    // nvcc's objects are newer than ninja's log of them.
    build.ninja("after nvcc", &ExpectedCounts::direct(all.len()))
}

fn path_before(folders: &[PathBuf]) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.iter().cloned().chain(std::env::split_paths(&path));
    std::env::join_paths(all).context("a folder in PATH has a colon")
}
