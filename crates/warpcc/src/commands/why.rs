//! `warpcc why`: says why a command hits or misses the cache.

mod print;

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use warpcc_cache::{Difference, DiskStore, InputManifest, KeyParts, Level};

use super::nvcc::{find_nvcc, split_compiler};
use super::output;
use crate::config::Config;
use crate::direct::conditions_hold;
use crate::history;
use crate::process_context::ProcessContext;
use crate::request::Request;
use crate::store::need_store;
use print::{FileChange, FileDifference, PartDifference, Why};

const WHY_EXAMPLES: &str = "\
Examples:
  warpcc why -- nvcc -c kernel.cu -o kernel.o";

/// `warpcc why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct WhyArgs {
    /// The command, with or without the compiler's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(required = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// Says why; the exit code is 0.
///
/// # Errors
/// No nvcc, or no cache.
pub fn run(args: &WhyArgs, config: &Config, around: ProcessContext) -> anyhow::Result<i32> {
    let why = why(args, config, around)?;
    output::print(|out| print::write(&why, out))?;
    Ok(0)
}

fn why(args: &WhyArgs, config: &Config, around: ProcessContext) -> anyhow::Result<Why> {
    let (named, rest) = split_compiler(&args.args);
    let nvcc = find_nvcc(named, config, &around)?;
    let request = match Request::new(
        nvcc,
        rest,
        around.directory.clone(),
        around.environment.clone(),
        &config.base_dir.value,
    ) {
        Ok(request) => request,
        Err(reason) => return Ok(Why::Fallback(reason.to_string())),
    };
    if let Some(reason) = request.invocation.plain {
        return Ok(Why::Fallback(reason.to_owned()));
    }
    let store = need_store(config)?;
    let listing = request.listing();
    let variants = differences(&store, &request, &listing)?;
    if variants
        .iter()
        .any(|(_, differences)| differences.is_empty())
    {
        return Ok(Why::Hit);
    }
    // The same command saw other files, or another command made this output last time.
    if let Some(files) = nearest(variants, &request) {
        return Ok(Why::Differs {
            parts: Vec::new(),
            files,
        });
    }
    let Some(earlier) = history::recall(&store, &request) else {
        return Ok(Why::NeverSeen);
    };
    let parts = part_differences(&earlier, &listing);
    let before = differences(&store, &request, &earlier)?;
    Ok(Why::Differs {
        parts,
        files: nearest(before, &request).unwrap_or_default(),
    })
}

/// What every remembered run under the keys of `listing` saw, and what is different now: none of it, for one that a call
/// would be answered with.
fn differences(
    store: &DiskStore,
    request: &Request,
    listing: &KeyParts,
) -> anyhow::Result<Vec<(InputManifest, Vec<Difference>)>> {
    let mut all = Vec::new();
    for variant in request.keys(listing).iter() {
        let holds = |outcome: &warpcc_cache::Outcome| conditions_hold(variant, outcome, request);
        let at = request.work_dir();
        all.extend(store.differences(Level::Direct, &variant.key, at, &holds)?);
    }
    Ok(all)
}

/// What differs from the remembered run that saw most of what is there now.
fn nearest(
    variants: Vec<(InputManifest, Vec<Difference>)>,
    request: &Request,
) -> Option<Vec<FileDifference>> {
    let (manifest, differences) = variants.into_iter().min_by_key(|(_, d)| d.len())?;
    let found = differences
        .into_iter()
        .map(|d| file_difference(d, request, &manifest))
        .collect();
    Some(found)
}

fn part_differences(old: &KeyParts, new: &KeyParts) -> Vec<PartDifference> {
    let text = |value: Option<Vec<u8>>| value.map(|v| String::from_utf8_lossy(&v).into_owned());
    KeyParts::changes(old, new)
        .into_iter()
        .map(|change| PartDifference {
            name: change.name,
            old: text(change.old),
            new: text(change.new),
        })
        .collect()
}

fn file_difference(
    difference: Difference,
    request: &Request,
    manifest: &InputManifest,
) -> FileDifference {
    let path = difference.path().to_owned();
    let is_source = request
        .invocation
        .inputs
        .iter()
        .any(|i| Path::new(i) == path);
    let kind = match difference {
        Difference::FileChanged { .. } if is_source => FileChange::SourceChanged,
        Difference::FileChanged { .. } => FileChange::HeaderChanged,
        Difference::FileMissing { .. } => FileChange::Missing,
        Difference::VariableChanged { .. } => FileChange::Variable,
        // Looked for here and found elsewhere: the new one now comes first.
        Difference::FileAppeared { .. } => manifest
            .files()
            .map(|file| file.path)
            .find(|old| old.file_name() == path.file_name())
            .map_or(FileChange::Appeared, FileChange::Shadows),
    };
    FileDifference { kind, path }
}
