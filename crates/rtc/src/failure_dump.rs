//! Saves texts that did not compile as a whole, so that people can inspect and compile them.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::Key;

use crate::error::CompileFailure;
use crate::request::CompileRequest;

/// The most files; the oldest are removed.
const MOST: usize = 64;

/// Saves the text of `request` as NVRTC saw it; `None` if that fails.
///
/// The file can be given to NVRTC or nvcc: additions are comments.
pub(crate) fn save(
    folder: &Path,
    request: &CompileRequest,
    key: &Key,
    failure: &CompileFailure,
) -> Option<PathBuf> {
    let mut text = String::new();
    let mut say = |name: &str, what: &str| {
        for line in what.lines() {
            // A backslash at the end of a line would make the next line part of the comment.
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
    for bundle in &request.bundles {
        say("embedded bundle: ", &bundle.digest_hex());
    }
    text.push_str(&request.whole_text());
    let name = format!("{}-{}.cu", short(&request.plain_name()), &key.hex()[..16]);
    let path = folder.join(name);
    prepare(folder)?;
    // The file first gets a private name, so that no half file is found.
    let private = folder.join(format!(
        ".{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    // The file must be new, and not reached through a link, so a file that a killed process left is removed first.
    drop(std::fs::remove_file(&private));
    let mut options = File::options();
    let created = options.write(true).create_new(true).open(&private);
    let written = created
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&private, &path));
    if written.is_err() {
        drop(std::fs::remove_file(&private));
        return None;
    }
    remove_old(folder, MOST);
    Some(path)
}

/// Makes the folder, and closes a new one to other users. `None` if another user owns it or can write to it: such a folder
/// may be full of links to our files.
pub(crate) fn prepare(folder: &Path) -> Option<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).ok()?;
    }
    drop(DirBuilder::new().mode(0o700).create(folder));
    let found = std::fs::symlink_metadata(folder).ok()?;
    let user = rustix::process::geteuid().as_raw();
    (found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0).then_some(())
}

pub(crate) fn short(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.chars().take(60).collect()
}

/// Removes the oldest files of a folder, so that `most` are left.
pub(crate) fn remove_old(folder: &Path, most: usize) {
    let Ok(listing) = std::fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(SystemTime, PathBuf)> = listing
        .flatten()
        .filter_map(|found| Some((found.metadata().ok()?.modified().ok()?, found.path())))
        .collect();
    files.sort();
    let many = files.len().saturating_sub(most);
    for (_, path) in files.into_iter().take(many) {
        // Another process may have removed it.
        drop(std::fs::remove_file(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_a_folder_of_our_own_will_do() {
        let base = tempfile::tempdir().expect("a folder");
        let folder = base.path().join("new/failed");
        assert!(prepare(&folder).is_some() && prepare(&folder).is_some());
        let link = base.path().join("link");
        symlink(&folder, &link).expect("a link");
        assert!(prepare(&link).is_none());
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&folder, open).expect("chmod");
        assert!(prepare(&folder).is_none());
    }
}
