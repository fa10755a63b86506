//! Texts that did not compile, saved whole, so that one can look and try by hand.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::Key;

use crate::error::CompileFailure;
use crate::request::Request;

/// More than this many are a nuisance; the oldest go.
const MOST: usize = 64;

/// Saves what NVRTC saw of `request`; none where that cannot be.
///
/// The file can be given to NVRTC or nvcc: all that was added stands in comments.
pub(crate) fn save(
    folder: &Path,
    request: &Request,
    key: &Key,
    failure: &CompileFailure,
) -> Option<PathBuf> {
    let mut text = String::new();
    let mut say = |name: &str, what: &str| {
        for line in what.lines() {
            // A backslash at its end would make the next line part of the comment.
            text.push_str(&format!("// {name}{}\n", line.trim_end_matches('\\')));
        }
    };
    say("kernel: ", &failure.name);
    say("key: ", &key.hex());
    say("target: ", &failure.target);
    say("NVRTC: ", &failure.nvrtc);
    for option in &failure.options {
        say("option: ", option);
    }
    for expression in &request.name_expressions {
        say("name expression: ", expression);
    }
    say("log: ", &failure.log);
    for header in &request.headers {
        say("header: ", &header.name);
        say("| ", &header.text);
    }
    text.push_str(&request.whole_text());
    let name = format!("{}-{}.cu", short(&request.plain_name()), &key.hex()[..16]);
    let path = folder.join(name);
    std::fs::create_dir_all(folder).ok()?;
    // Under a name of its own first, so that nobody finds half of one.
    let private = folder.join(format!(
        ".{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let written = std::fs::write(&private, text).and_then(|()| std::fs::rename(&private, &path));
    if written.is_err() {
        drop(std::fs::remove_file(&private));
        return None;
    }
    remove_old(folder);
    Some(path)
}

fn short(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.chars().take(60).collect()
}

fn remove_old(folder: &Path) {
    let Ok(listing) = std::fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(SystemTime, PathBuf)> = listing
        .flatten()
        .filter_map(|found| Some((found.metadata().ok()?.modified().ok()?, found.path())))
        .collect();
    files.sort();
    let many = files.len().saturating_sub(MOST);
    for (_, path) in files.into_iter().take(many) {
        // Another process may have done so.
        drop(std::fs::remove_file(path));
    }
}
