//! Checks rules of this repository that neither the compiler nor clippy can check.
//!
//! Most rules look at one file. Others look at all pages, at the imports of files, at files that are not compiled, and at
//! the crates that cargo links. Each complaint says what to do, not only what is wrong. A rule that is in the way is
//! changed here, in the commit that needs it, with the reason in the message; there are no exemption lists.

mod circles;
mod commands;
mod complaint;
mod direction;
mod documents;
mod launcher;
mod markdown;
mod orphans;
pub mod rules;
mod tables;
mod test_filters;
mod type_names;
mod workflow_actions;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, repo};
use complaint::{Rule, Source};

const RULES: &[Rule] = &[
    rules::opens_with_a_sentence,
    rules::is_not_too_long,
    rules::has_a_telling_name,
    rules::functions_have_verbs,
    rules::plans_and_maps_are_pure,
    rules::environment_has_one_reader,
    rules::is_small,
    rules::is_ours,
    tables::long_functions_are_tables,
    direction::points_down,
    direction::calls_use_no_command,
    direction::files_stay_in_their_crate,
    workflow_actions::actions_are_commits,
];

/// `cargo xtask tidy`.
pub fn main() -> Result<()> {
    let root = repo::root();
    let mut texts = BTreeMap::new();
    let mut complaints = Vec::new();
    for path in files(&root)? {
        let Some(bytes) = read(&root, &path)? else {
            continue;
        };
        let text = str::from_utf8(&bytes).unwrap_or_default();
        let source = Source {
            path: &path,
            bytes: &bytes,
            text,
        };
        for complaint in RULES.iter().flat_map(|rule| rule(&source)) {
            complaints.push((path.clone(), complaint));
        }
        texts.insert(path, text.to_owned());
    }
    complaints.extend(documents::Repository::new(&texts).complaints());
    complaints.extend(circles::complaints(&texts));
    complaints.extend(orphans::complaints(&texts));
    complaints.extend(test_filters::complaints(&texts));
    complaints.extend(type_names::complaints(&texts));
    complaints.extend(launcher::complaints()?);
    for (path, complaint) in &complaints {
        let place = match complaint.line {
            0 => path.clone(),
            line => format!("{path}:{line}"),
        };
        println!("{place}: {}", complaint.message);
    }
    match complaints.len() {
        0 => println!("tidy: {} files, nothing to do", texts.len()),
        1 => bail!("tidy: one thing to do, named above"),
        n => bail!("tidy: {n} things to do, named above"),
    }
    Ok(())
}

/// Every file that is committed or would be by `git add -A`, so that a new file is checked
/// before its first commit.
fn files(root: &Path) -> Result<Vec<String>> {
    let listing = process::output(Command::new("git").current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--deduplicate",
    ]))
    .context("tidy asks git which files are ours")?;
    Ok(listing
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

/// A file's bytes; `None` for a deleted file whose deletion is not committed, and for a link, whose
/// target is checked by itself.
fn read(root: &Path, path: &str) -> Result<Option<Vec<u8>>> {
    let full = root.join(path);
    if !full.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    let bytes = fs::read(&full).with_context(|| format!("failed to read {path}"))?;
    Ok(Some(bytes))
}
