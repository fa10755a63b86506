//! `warpcc rtc embed`: headers and LTO-IR as one file, for build systems.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use warpcc_rtc_build::{Embed, depfile};

use super::args::EmbedArgs;
use crate::commands::nvcc::find_nvcc;
use crate::commands::output::write_file;
use crate::config::{Config, variable};
use crate::process_context::ProcessContext;

/// Writes the bundle, and what goes with it.
///
/// # Errors
/// A file cannot be read or written, or does not compile.
pub fn write_bundle(args: &EmbedArgs, context: &ProcessContext) -> anyhow::Result<()> {
    let mut embed = Embed::new().architectures(args.arch.iter().cloned());
    for folder in &args.base_dir {
        embed = embed.base_folder(folder);
    }
    for header in args.headers.iter().chain(&listed(args)?) {
        embed = embed.header(header);
    }
    for folder in &args.header_dir {
        embed = embed.header_dir(folder);
    }
    for source in &args.lto {
        embed = embed.lto(source);
    }
    for option in &args.options {
        embed = embed.option(option);
    }
    if embed.compiles() {
        let config = Config::load(variable)?;
        let nvcc = find_nvcc(args.nvcc.as_deref(), &config, context)?;
        embed = embed.compiler([own_path(context), nvcc.into_os_string()]);
    }
    let scratch = tempfile::tempdir().context("there is no temporary folder")?;
    let made = embed.make(scratch.path())?;
    write(&args.output, &made.bytes)?;
    if let Some(path) = &args.depfile {
        write(path, &depfile(&args.output, &made.found))?;
    }
    let Some(accessor) = &args.accessor else {
        return Ok(());
    };
    if let Some(path) = &args.c_source {
        // The compiler may run in another folder.
        let bundle = std::path::absolute(&args.output)?;
        let bundle = bundle.to_str().context("the output's path is not UTF-8")?;
        write(path, accessor.source(bundle, &made).as_bytes())?;
    }
    if let Some(path) = &args.c_header {
        write(path, accessor.header().as_bytes())?;
    }
    Ok(())
}

fn own_path(context: &ProcessContext) -> OsString {
    context.ourselves[0].clone().into_os_string()
}

/// The headers that a file names.
fn listed(args: &EmbedArgs) -> anyhow::Result<Vec<PathBuf>> {
    let Some(path) = &args.headers_from else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
    let lines = text.lines().filter(|line| !line.is_empty());
    Ok(lines.map(PathBuf::from).collect())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_file(path, |out| out.write_all(bytes))
}
