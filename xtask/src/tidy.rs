//! Rules of this repository that neither the compiler nor clippy can hold.
//!
//! Each rule looks at one file and answers with what to do about it, never with only what is
//! wrong. A rule that is in the way is changed here, in the commit that needs it, with its
//! reason in the message; there are no exemption lists.

mod direction;
mod rules;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, repo};

/// One file as the rules see it.
struct Source<'a> {
    /// Relative to the repository's root, with `/`.
    path: &'a str,
    bytes: &'a [u8],
    /// The bytes as text; empty when they are not.
    text: &'a str,
}

/// A rule: what to do about this file, one message per place, line 0 for the whole file.
type Rule = fn(&Source) -> Vec<Complaint>;

/// What a rule has to say about one place.
#[derive(Debug, PartialEq)]
struct Complaint {
    line: usize,
    message: String,
}

impl Complaint {
    fn whole(message: impl Into<String>) -> Self {
        Self {
            line: 0,
            message: message.into(),
        }
    }

    fn at(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

const RULES: &[Rule] = &[
    rules::opens_with_a_sentence,
    rules::is_not_too_long,
    rules::has_a_telling_name,
    rules::plan_is_pure,
    rules::environment_has_one_reader,
    rules::is_small,
    rules::is_ours,
    direction::points_down,
];

/// `cargo xtask tidy`.
pub fn main() -> Result<()> {
    let root = repo::root();
    let files = files(&root)?;
    let mut complaints = 0;
    for path in &files {
        for complaint in check(&root, path)? {
            let place = match complaint.line {
                0 => path.clone(),
                line => format!("{path}:{line}"),
            };
            println!("{place}: {}", complaint.message);
            complaints += 1;
        }
    }
    match complaints {
        0 => println!("tidy: {} files, nothing to do", files.len()),
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

fn check(root: &Path, path: &str) -> Result<Vec<Complaint>> {
    let full = root.join(path);
    match full.symlink_metadata() {
        // Deleted, and not yet committed as such; or a link, whose target is checked by itself.
        Err(_) => return Ok(Vec::new()),
        Ok(meta) if !meta.is_file() => return Ok(Vec::new()),
        Ok(_) => {}
    }
    let bytes = fs::read(&full).with_context(|| format!("failed to read {path}"))?;
    let text = str::from_utf8(&bytes).unwrap_or_default();
    let source = Source {
        path,
        bytes: &bytes,
        text,
    };
    Ok(RULES.iter().flat_map(|rule| rule(&source)).collect())
}
