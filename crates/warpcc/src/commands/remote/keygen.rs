//! `warpcc remote keygen`: a pair of keys in two new files. `warpcc-remote` makes them, because it has the cryptography.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::commands::output;
use crate::remotes;

/// `warpcc remote keygen`.
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// New file for the signing key; the public key goes to FILE.pub
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What the keys are called in messages and lists [default: the file's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Makes the files; neither may be there.
///
/// # Errors
/// A file is there or cannot be written, a name that is none, no `warpcc-remote`.
pub fn run(args: &KeygenArgs, ourselves: &Path) -> anyhow::Result<i32> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => {
            let stem = args.file.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }
    };
    let keys = remotes::for_command(ourselves, &[]).keygen(&name);
    let keys = keys.map_err(anyhow::Error::msg)?;
    let mut public_file = args.file.clone().into_os_string();
    public_file.push(".pub");
    let public_file = PathBuf::from(public_file);
    write_new(&args.file, 0o600, &keys.secret)?;
    write_new(&public_file, 0o644, &keys.public)?;
    output::print(|out| {
        writeln!(out, "signing key: {}", args.file.display())?;
        writeln!(out, "public key:  {}", public_file.display())?;
        writeln!(out, "{}", keys.public)
    })?;
    Ok(0)
}

fn write_new(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{text}"));
    written.with_context(|| format!("cannot write {}", path.display()))
}
