//! The licences of what is linked into the program, as their files say, each text once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::metadata::Package;
use crate::repo;

/// How a file that tells of a licence begins.
const NAMES: [&str; 5] = ["licen", "copying", "notice", "unlicense", "copyright"];

/// What is in the program and is no crate of the lock file.
const OTHERS: &str = "\
Rust's standard library: MIT OR Apache-2.0, The Rust Project Developers.
compiler-rt and libunwind, which zig links: Apache-2.0 WITH LLVM-exception, the LLVM Project.
DejaVu Sans and DejaVu Sans Bold, for drawn graphs: below.
";

/// One text: which crate has which licence, then each licence's text with the crates that bring it.
pub fn texts(linked: &[Package]) -> Result<String> {
    let mut list = String::from("What is linked into warpcc, and its licences\n\n");
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked.iter().filter(|package| package.source.is_some()) {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("see its file");
        list += &format!("{name}: {licence}");
        let folder = package
            .manifest_path
            .parent()
            .context("it is in a folder")?;
        let found = texts_in(folder)?;
        if found.is_empty() {
            list += " (its archive has no text of it)";
        }
        list.push('\n');
        for text in found {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    list += OTHERS;
    let fonts = repo::root().join("crates/warpcc/src/commands/graph/fonts/LICENSE");
    let fonts = fs::read_to_string(&fonts)
        .with_context(|| format!("failed to read {}", fonts.display()))?;
    by_text
        .entry(fonts.trim().to_owned())
        .or_default()
        .push("DejaVu".to_owned());
    let line = "-".repeat(78);
    for (text, names) in by_text {
        list += &format!("\n{line}\n{}\n{line}\n\n{text}\n", names.join(", "));
    }
    Ok(list)
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let listed = fs::read_dir(folder);
    for entry in listed.with_context(|| format!("failed to list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.path().is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            texts.push(text.replace("\r\n", "\n").trim().to_owned());
        }
    }
    texts.sort();
    texts.dedup();
    Ok(texts)
}
