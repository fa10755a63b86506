//! A toolkit folder in the shape that CMake's find modules look for, made of links to a toolkit
//! and to headers from other wheels. It does not know what is built with it.

use crate::{process, repo};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Makes a toolkit as CMake expects one, of links to the real one. The wheels have no `libcudart.so`
/// without a version, no cuBLAS and no driver library. We link no program, so empty libraries are
/// enough.
pub fn make(nvcc: &Path, toolkit: &Path) -> Result<()> {
    let home = nvcc
        .ancestors()
        .nth(2)
        .context("nvcc is in a folder `bin`")?;
    for folder in ["bin", "include", "lib"] {
        fs::create_dir_all(toolkit.join(folder))?;
        link_each(&home.join(folder), &toolkit.join(folder))?;
    }
    link_each(
        &repo::sources_dir().join("nvidia-cublas"),
        &toolkit.join("include"),
    )?;
    symlink(home.join("nvvm"), toolkit.join("nvvm"))?;
    symlink("lib", toolkit.join("lib64"))?;
    for library in ["cudart", "cublas", "cublasLt", "cuda"] {
        let path = toolkit.join(format!("lib/lib{library}.so"));
        if !path.exists() {
            process::output(
                Command::new("g++")
                    .args(["-shared", "-x", "c++", "/dev/null", "-o"])
                    .arg(path),
            )?;
        }
    }
    Ok(())
}

fn link_each(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let link = to.join(entry.file_name());
        if link.symlink_metadata().is_err() {
            symlink(entry.path(), &link).with_context(|| link.display().to_string())?;
        }
    }
    Ok(())
}
