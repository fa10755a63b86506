//! `warpcc shim`: makes a folder that looks like a CUDA toolkit, with warpcc as its nvcc. It is for programs that always run
//! `$CUDA_HOME/bin/nvcc`.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::nvcc::find_nvcc;
use super::output;
use crate::config::Config;
use crate::process_context::ProcessContext;

const SHIM_EXAMPLES: &str = "\
Examples:
  warpcc shim ~/cuda-warpcc          links to the toolkit of nvcc in PATH
  CUDA_HOME=~/cuda-warpcc pip install --no-build-isolation .
  warpcc shim ~/cuda-warpcc --undo   removes the folder

If warpcc is removed, the folder's nvcc is the toolkit's own.";

/// `warpcc shim`.
#[derive(Debug, Args)]
#[command(after_help = SHIM_EXAMPLES)]
pub struct ShimArgs {
    /// The folder to make; if shim has made it before, it is updated
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The nvcc of the toolkit to use, instead of the one in PATH
    #[arg(long, value_name = "FILE")]
    nvcc: Option<PathBuf>,
    /// Remove the folder
    #[arg(long, conflicts_with = "nvcc")]
    undo: bool,
}

/// The file that shows that warpcc made the folder. It contains the path of the toolkit's folder.
const MARK: &str = crate::locate::SHIM_MARK;

/// Makes the folder, or removes it; the exit code is 0.
///
/// # Errors
/// There is no nvcc, the folder was not made by this command, or a file cannot be written.
pub fn run(args: &ShimArgs, config: &Config, context: &ProcessContext) -> anyhow::Result<i32> {
    let folder = context.directory.join(&args.folder);
    let shown = folder.display().to_string();
    if args.undo {
        remove(&folder)?;
        output::print(|out| writeln!(out, "removed {shown}"))?;
        return Ok(0);
    }
    let quoted = quoted(&folder)?;
    let nvcc = find_nvcc(args.nvcc.as_deref(), config, context)?;
    let mut nvcc = context.directory.join(nvcc);
    // Links are followed only where nvcc.profile is missing: a toolkit may consist of links, and /usr/bin/nvcc may be a link into one.
    if !nvcc.with_file_name("nvcc.profile").exists() {
        let cannot = || format!("cannot read {}", nvcc.display());
        nvcc = nvcc.canonicalize().with_context(cannot)?;
    }
    let toolkit = &toolkit_of(&nvcc)?;
    if let Some(name) = nvcc.file_name() {
        nvcc = toolkit.join("bin").join(name);
    }
    let own = (context.ourselves.first()).context("the path of this program is not known")?;
    if folder.canonicalize().ok() == toolkit.canonicalize().ok() {
        bail!("{shown} is the toolkit itself");
    }
    claim(&folder, toolkit)?;
    link_all(toolkit, &folder, &["bin", MARK])?;
    let (from, to) = (toolkit.join("bin"), folder.join("bin"));
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    link_all(&from, &to, &["nvcc"])?;
    write_program(&to.join("nvcc"), own, &nvcc)?;
    output::print(|out| {
        writeln!(
            out,
            "{shown} is {} with warpcc as its nvcc",
            toolkit.display()
        )?;
        writeln!(out, "use it as: CUDA_HOME={quoted}")
    })?;
    Ok(0)
}

/// The toolkit of an nvcc. For an nvcc in a shim folder this is the toolkit that the shim uses, so that shims never
/// call each other.
fn toolkit_of(nvcc: &Path) -> anyhow::Result<PathBuf> {
    let bin = nvcc.parent().filter(|bin| bin.ends_with("bin"));
    let folder = bin
        .and_then(Path::parent)
        .with_context(|| format!("{} is not in the bin folder of a toolkit", nvcc.display()))?;
    let mark = is_ours(folder).then(|| fs::read(folder.join(MARK)).ok());
    let marked = mark.flatten().map(|text| {
        let path = text.strip_suffix(b"\n").unwrap_or(&text);
        PathBuf::from(OsStr::from_bytes(path))
    });
    let marked = marked.filter(|toolkit| toolkit.is_absolute());
    Ok(marked.unwrap_or_else(|| folder.to_owned()))
}

/// Whether the folder was made by this command.
fn is_ours(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(MARK)).is_ok_and(|found| found.is_file())
}

/// Puts the mark into the folder. Fails if the folder has other files.
fn claim(folder: &Path, toolkit: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot create {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let is_empty = fs::read_dir(folder).with_context(cannot)?.next().is_none();
    if !is_empty && !is_ours(folder) {
        bail!(
            "{} has files in it that warpcc did not make: name another folder",
            folder.display()
        );
    }
    let mark = folder.join(MARK);
    output::write_file(&mark, |out| {
        out.write_all(toolkit.as_os_str().as_bytes())?;
        out.write_all(b"\n")
    })
}

/// Makes a link for everything in `from` except `without`. Removes links of an earlier call whose targets are gone.
fn link_all(from: &Path, to: &Path, without: &[&str]) -> anyhow::Result<()> {
    let is_left_out = |name: &OsStr| without.iter().any(|left_out| name == *left_out);
    let cannot_read = |folder: &Path| format!("cannot read {}", folder.display());
    for item in fs::read_dir(to).with_context(|| cannot_read(to))? {
        let item = item.with_context(|| cannot_read(to))?;
        let is_link = item.file_type().is_ok_and(|kind| kind.is_symlink());
        let is_current = || {
            let target = fs::read_link(item.path());
            target.is_ok_and(|target| target == from.join(item.file_name()) && target.exists())
        };
        if is_link && !is_left_out(&item.file_name()) && !is_current() {
            let cannot = || format!("cannot remove {}", item.path().display());
            fs::remove_file(item.path()).with_context(cannot)?;
        }
    }
    for item in fs::read_dir(from).with_context(|| cannot_read(from))? {
        let name = item.with_context(|| cannot_read(from))?.file_name();
        if is_left_out(&name) {
            continue;
        }
        match symlink(from.join(&name), to.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => done.with_context(|| format!("cannot link {}", to.join(&name).display()))?,
        }
    }
    Ok(())
}

/// A path, quoted for a shell.
fn quoted(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str();
    let text = text.with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// Writes the folder's nvcc: a script that calls warpcc with the path of the toolkit's nvcc.
fn write_program(file: &Path, own: &Path, nvcc: &Path) -> anyhow::Result<()> {
    let (own, nvcc) = (quoted(own)?, quoted(nvcc)?);
    let script = format!(
        "#!/bin/sh\n# Made by `warpcc shim`.\n[ -x {own} ] && exec {own} {nvcc} \"$@\"\nexec {nvcc} \"$@\"\n"
    );
    // Do not write through a link.
    if file.is_symlink() {
        fs::remove_file(file).with_context(|| format!("cannot replace {}", file.display()))?;
    }
    output::replace_file(file, script.as_bytes(), Permissions::from_mode(0o755))
}

/// Removes the links and files that warpcc made, and folders that are then empty.
fn remove(folder: &Path) -> anyhow::Result<()> {
    if !is_ours(folder) {
        bail!("{} was not made by warpcc shim", folder.display());
    }
    let cannot = |path: &Path| format!("cannot remove {}", path.display());
    // The user may have named the folder by a link of their own. The link stays.
    let folder = folder.canonicalize().with_context(|| cannot(folder))?;
    let folder = folder.as_path();
    let bin = folder.join("bin");
    let places: Vec<&Path> = [&bin, folder]
        .into_iter()
        .filter(|at| at.is_dir())
        .collect();
    for place in &places {
        for item in fs::read_dir(place).with_context(|| cannot(place))? {
            let item = item.with_context(|| cannot(place))?;
            let is_link = item.file_type().is_ok_and(|kind| kind.is_symlink());
            let is_mark = item.path() == folder.join(MARK);
            if is_link || is_mark || item.path() == bin.join("nvcc") {
                fs::remove_file(item.path()).with_context(|| cannot(&item.path()))?;
            }
        }
        fs::remove_dir(place).with_context(|| cannot(place))?;
    }
    Ok(())
}
