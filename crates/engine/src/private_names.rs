//! Finds names that a run used and that it would not have used under nvcc. warpcc gives each output a private name
//! until it is put in place, so a tool that uses such a name may do something else than under nvcc.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use warpcc_watch::{Observed, PathText};

use crate::own_name;
use crate::scene::Scene;

/// The first name that a tool chose itself and that is in the private folder: next to an output (gcc's `.gcno`, `.su`,
/// `.gcda`), or in `TMPDIR`. The plan does not have this name. Under nvcc it would be in the user's folder.
pub fn find(observed: &Observed, scene: &Scene<'_>) -> Option<String> {
    let folders = ["out", "tmp", "k"].map(|folder| scene.scratch.join(folder));
    let [outputs, temporary, _] = &folders;
    // The files for another machine are prepared in a separate folder.
    let is_stranger = |path: &Path| {
        let mut folders = folders.iter();
        folders.any(|folder| path.starts_with(folder)) && !(scene.own)(path)
    };
    // A cicc that fails leaves a file with a random name in `TMPDIR`. No other program looks for it.
    let mut programs = observed.processes.iter();
    let only_nvidias = programs.all(|program| {
        let has_environ = observed.have_environ.contains(&**program);
        scene.known.is_nvidias(program, has_environ)
    });
    let is_kept = |path: &Path| is_stranger(path) && !(only_nvidias && path.starts_with(temporary));
    let left = |path: &&PathText| is_kept(path) && fs::symlink_metadata(path).is_ok();
    if let Some(path) = observed.written.keys().find(left) {
        return Some(format!("{} is created too", path.display()));
    }
    let mut written = observed.written.keys();
    if let Some(path) = written.find(|path| own_name::is_in_name(path, scene.scratch)) {
        return Some(format!(
            "{} has the name of the scratch folder",
            path.display()
        ));
    }
    if let Some(path) = holding_own_name(observed, scene, outputs) {
        return Some(format!("{} has its own name in it", path.display()));
    }
    if let Some(path) = placed_later(observed, scene) {
        return Some(format!("{} is not there yet", path.display()));
    }
    // A step looks at thousands of paths. Few of them have the name of the private folder, and only these can be wrong.
    let private = memmem::Finder::new(scene.scratch.file_name().unwrap_or_default().as_bytes());
    let is_private = |path: &&PathText| private.find(path.as_os_str().as_bytes()).is_some();
    let looked_for = |path: &&PathText| {
        let inside = |folder: &Path| path.starts_with(folder) && ***path != *folder;
        // Each step's own folder is there before its tool begins.
        let is_temporary = |path: &Path| inside(temporary) && path.parent() != Some(temporary);
        let holds_output = (scene.writes.iter()).any(|file| file.parent() == Some(path));
        let is_made_up =
            inside(outputs) && !holds_output || is_temporary(path) || scene.is_derived(path);
        let is_made_up =
            is_made_up && is_stranger(path) || own_name::is_in_name(path, scene.scratch);
        is_made_up && !observed.written.contains_key(path.as_os_str())
    };
    let read = observed.read.keys().chain(&observed.missing);
    let path = (read.chain(&observed.found).filter(is_private)).find(looked_for)?;
    Some(format!("{} is searched for", path.display()))
}

/// The user's name of an output, if a program used it although it was given another name. Under nvcc the program would
/// have found the new file there.
fn placed_later<'o>(observed: &'o Observed, scene: &Scene<'_>) -> Option<&'o PathText> {
    let placed = scene.placed_later.iter();
    let names: Vec<&OsStr> = placed.filter_map(|path| path.file_name()).collect();
    let is_output = |path: &&PathText| {
        let is_named = path.file_name().is_some_and(|name| names.contains(&name));
        is_named && (scene.placed_later).contains(&scene.directory.join(path))
    };
    let used = observed.read.keys().chain(&observed.missing);
    let used = used.chain(&observed.found).chain(observed.looked.keys());
    let made = observed.written.keys().chain(&observed.removed);
    used.chain(made).find(is_output)
}

/// A file in which a tool wrote the private name of its output, or a name made from it.
fn holding_own_name(observed: &Observed, scene: &Scene<'_>, outputs: &Path) -> Option<PathBuf> {
    // No other output has a private name.
    let is_told = scene.writes.iter().any(|path| path.starts_with(outputs));
    let written = observed.written.keys().filter(|_| is_told);
    let mut files = written.map(|path| scene.directory.join(path));
    files.find(|file| own_name::is_written_in(file, scene.scratch, outputs, scene.planned))
}
