//! A toolkit whose cudafe++ always has the same process id. That id ends the module id of a file
//! without an external function, so that no two runs of nvcc agree on such a file; with this
//! toolkit they do, and a comparison needs no excuse.

use crate::process;
use anyhow::{Context, Result};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "int getpid(void) { return 4242; }\n";

/// Makes such a toolkit, of links to the toolkit of `nvcc`, in place of the one at `to`. Gives its nvcc.
pub fn make(nvcc: &Path, to: &Path) -> Result<PathBuf> {
    let home = nvcc
        .ancestors()
        .nth(2)
        .context("nvcc is in a folder `bin`")?;
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| to.display().to_string())?;
    }
    let bin = to.join("bin");
    fs::create_dir_all(&bin).with_context(|| bin.display().to_string())?;
    for entry in fs::read_dir(home)? {
        let name = entry?.file_name();
        if name != "bin" {
            symlink(home.join(&name), to.join(&name))?;
        }
    }
    for entry in fs::read_dir(home.join("bin"))? {
        let name = entry?.file_name();
        let from = home.join("bin").join(&name);
        match name.to_str() {
            Some("cudafe++") => {}
            // nvcc looks for its tools next to its real file, not next to a link.
            Some("nvcc" | "nvcc.profile") => {
                fs::copy(&from, bin.join(&name))?;
            }
            _ => symlink(&from, bin.join(&name))?,
        }
    }
    let (source, library) = (to.join("getpid.c"), to.join("getpid.so"));
    fs::write(&source, SOURCE)?;
    process::output(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source]),
    )?;
    let script = bin.join("cudafe++");
    fs::write(
        &script,
        // Keeps the library that warpcc preloads to watch a tool.
        format!(
            "#!/bin/sh\nLD_PRELOAD=\"{}${{LD_PRELOAD:+:$LD_PRELOAD}}\" exec \"{}\" \"$@\"\n",
            library.display(),
            home.join("bin/cudafe++").display()
        ),
    )?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    Ok(bin.join("nvcc"))
}
