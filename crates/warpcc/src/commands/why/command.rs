//! Finds out whether a command would hit, and what differs from the remembered runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use warpcc_cache::{Difference, DiskStore, InputManifest, KeyParts, Level};
use warpcc_report::record::CallOutcome;

use super::print::{FileChange, FileDifference, PartDifference, Why};
use crate::call_record::records;
use crate::config::Config;
use crate::direct::conditions_hold;
use crate::history;
use crate::process_context::ProcessContext;
use crate::request::Request;
use crate::store::need_store;

/// Compares the call of `nvcc` with `args` in `directory` with what the cache remembers.
///
/// # Errors
/// No cache, or one that cannot be read.
pub fn why(
    nvcc: PathBuf,
    args: &[OsString],
    directory: &Path,
    config: &Config,
    context: &ProcessContext,
) -> anyhow::Result<Why> {
    let request = match Request::new(
        nvcc,
        args,
        directory.to_owned(),
        context.environment.clone(),
        &config.base_dir.value,
    ) {
        Ok(request) => request,
        Err(reason) => return Ok(Why::Fallback(reason.to_string())),
    };
    if let Some(reason) = request.invocation.plain {
        return Ok(Why::Fallback(reason.to_owned()));
    }
    let inputs = request.invocation.inputs.iter();
    let mut missing = inputs.filter(|input| !request.absolute(input).exists());
    if let Some(missing) = missing.next() {
        return Ok(Why::NoSource(missing.into()));
    }
    let store = need_store(config)?;
    let key_parts = request.key_parts();
    let variants = differences(&store, &request, &key_parts)?;
    if variants
        .iter()
        .any(|(_, differences)| differences.is_empty())
    {
        return Ok(Why::Hit);
    }
    // If there is a run under the same key, other files differ. If not, the last command for this output had another key.
    if let Some(files) = nearest(variants, &request) {
        return Ok(Why::Differs {
            parts: Vec::new(),
            files,
        });
    }
    let Some(earlier) = history::recall(&store, &request) else {
        return Ok(Why::NeverSeen);
    };
    let parts = part_differences(&earlier, &key_parts);
    let before = differences(&store, &request, &earlier)?;
    let files = nearest(before, &request).unwrap_or_default();
    if parts.is_empty()
        && files.is_empty()
        && let Some(reason) = why_not_kept(&store, &request)
    {
        return Ok(Why::NotStored(reason));
    }
    Ok(Why::Differs { parts, files })
}

/// The input manifest of every remembered run under the keys of `key_parts`, with the differences from the files now. A run
/// without differences would answer the call.
fn differences(
    store: &DiskStore,
    request: &Request,
    key_parts: &KeyParts,
) -> anyhow::Result<Vec<(InputManifest, Vec<Difference>)>> {
    let mut all = Vec::new();
    for variant in request.keys(key_parts).iter() {
        let holds = |outcome: &warpcc_cache::Outcome| conditions_hold(variant, outcome, request);
        let at = request.work_dir();
        all.extend(store.differences(Level::Direct, &variant.key, at, &holds)?);
    }
    Ok(all)
}

/// The differences from the remembered run that has the fewest; `None` without remembered runs.
fn nearest(
    variants: Vec<(InputManifest, Vec<Difference>)>,
    request: &Request,
) -> Option<Vec<FileDifference>> {
    let (manifest, differences) = variants.into_iter().min_by_key(|(_, d)| d.len())?;
    let mut found: Vec<FileDifference> = Vec::new();
    for difference in differences {
        let difference = file_difference(difference, request, &manifest);
        // Several programs of a build may have read one file.
        if !found.contains(&difference) {
            found.push(difference);
        }
    }
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
        // The file was looked for here and found elsewhere: the new file now comes first.
        Difference::FileAppeared { .. } => manifest
            .files()
            .map(|file| file.path)
            .find(|old| old.file_name() == path.file_name())
            .map_or(FileChange::Appeared, FileChange::Shadows),
    };
    FileDifference { kind, path }
}

/// Why the last call like this one was not stored, as its record says.
fn why_not_kept(store: &DiskStore, request: &Request) -> Option<String> {
    let words = request.args.iter().map(|arg| arg.to_string_lossy());
    let words: Vec<_> = words.collect();
    let mut last = None;
    // Records that cannot be read are skipped.
    drop(records(store).visit(|call| {
        let same = Path::new(&call.directory) == request.directory
            && call.args.get(1..).unwrap_or_default() == words;
        let why = match call.outcome {
            CallOutcome::Built => call.not_kept,
            CallOutcome::Failed { code } => Some(format!(
                "it failed with exit code {code}, and a call that fails is never stored"
            )),
            _ => return,
        };
        if same
            && last
                .as_ref()
                .is_none_or(|(at, _)| *at <= call.started_unix_ns)
        {
            last = Some((call.started_unix_ns, why));
        }
    }));
    last?.1
}
