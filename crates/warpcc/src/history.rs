//! Notes that one call leaves in the cache for later calls; and the background processes that shrink the cache and upload from
//! it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::{Digest, DiskStore, Hashing, Key, KeyParts, KeySink, regular_file};

use crate::request::Request;

const KIND: &str = "calls";
const IDENTITY: &str = "warpcc call 1";

/// Notes the parts of a call's key.
pub fn remember(store: &DiskStore, request: &Request, key_parts: &KeyParts) {
    let key = request.identity().key(IDENTITY);
    if let Ok(value) = serde_json::to_vec(key_parts) {
        // If the note cannot be written, `why` cannot name the part that differs.
        _ = store.put_note(KIND, &key, &value);
    }
}

/// The key parts of the last call with the same identity; `None` where there is no note of one.
pub fn recall(store: &DiskStore, request: &Request) -> Option<KeyParts> {
    let key: Key = request.identity().key(IDENTITY);
    serde_json::from_slice(&store.note(KIND, &key)?).ok()
}

const SIDE_FILES_KIND: &str = "stray";

/// The time after which a note of such a call is forgotten: a wrapper may have changed.
const SIDE_FILES_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The key of the note: that of the call, and the texts of the host compiler's options files, which are not in it.
fn side_files_key(request: &Request, call: Key) -> Key {
    let mut key = Hashing::new("side files of a call");
    key.part("call", call.hex().as_bytes());
    add_options_files(&mut key, request);
    key.finish()
}

/// Adds the texts of the host compiler's options files.
fn add_options_files(key: &mut Hashing, request: &Request) {
    for file in &request.invocation.host_options_files {
        // Without the file the compiler takes the word itself for an argument.
        let text = regular_file::read(&request.absolute(file)).unwrap_or_default();
        key.part("options file", &text);
    }
}

/// Notes that a tool of this call used side files.
pub fn note_side_files(store: &DiskStore, request: &Request, call: Key) {
    note_now(store, SIDE_FILES_KIND, side_files_key(request, call));
}

/// Whether a tool of this call used side files within the last day.
pub fn used_side_files(store: &DiskStore, request: &Request, call: Key) -> bool {
    was_noted(store, SIDE_FILES_KIND, side_files_key(request, call))
}

const CHANGES_KIND: &str = "changed-files";

/// Notes that a command of this call changed a file besides its outputs.
pub fn note_changed_files(store: &DiskStore, request: &Request, call: Key) {
    note_now(store, CHANGES_KIND, side_files_key(request, call));
}

/// Whether a command of this call changed a file besides its outputs within the last day.
pub fn changed_other_files(store: &DiskStore, request: &Request, call: Key) -> bool {
    was_noted(store, CHANGES_KIND, side_files_key(request, call))
}

fn note_now(store: &DiskStore, kind: &str, key: Key) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs();
    // If the note cannot be written, the next call also starts a build that has to be given up.
    _ = store.put_note(kind, &key, &seconds.to_le_bytes());
}

fn was_noted(store: &DiskStore, kind: &str, key: Key) -> bool {
    let seconds = store.note(kind, &key).and_then(|note| note.try_into().ok());
    let noted = seconds.map(|s| UNIX_EPOCH + Duration::from_secs(u64::from_le_bytes(s)));
    noted.is_some_and(|at| at.elapsed().is_ok_and(|age| age < SIDE_FILES_AGE))
}

const FREE_KIND: &str = "folder-free";
const FREE: &str = "warpcc folder-free call 1";

/// Whether this call would have been a hit with `base_dir = "auto"`: the same call with the same sources was built in another
/// folder. Notes this call too, for the next one.
pub fn was_built_elsewhere(store: &DiskStore, request: &Request) -> bool {
    let Some((key_parts, path_map)) = request.key_parts_without_folders() else {
        return false;
    };
    let key = key_parts.key(FREE);
    let mut sources = String::new();
    for input in &request.invocation.inputs {
        match Digest::of_file(&request.absolute(input)) {
            Ok(digest) => sources.push_str(&format!("{digest}\n")),
            Err(_) => return false,
        }
    }
    let folders: Vec<&str> = path_map
        .pairs()
        .into_iter()
        .map(|(folder, _)| folder)
        .collect();
    let here = format!("{sources}\n{}", folders.join("\n"));
    let before = store.note(FREE_KIND, &key);
    if before.as_deref() == Some(here.as_bytes()) {
        return false;
    }
    // If the note cannot be written, this is not counted.
    _ = store.put_note(FREE_KIND, &key, here.as_bytes());
    before.is_some_and(|before| before.starts_with(format!("{sources}\n").as_bytes()))
}

const WARNING_KIND: &str = "told";

/// Whether an earlier call of this build has printed the warning `text`. Notes that it is printed now. With a read-only cache
/// there is no note, and every call prints it.
pub fn was_warned(store: &DiskStore, build: &str, text: &str) -> bool {
    let mut key = Hashing::new("told in a build");
    key.part("build", build.as_bytes());
    key.part("text", text.as_bytes());
    let key = key.finish();
    let was_printed = store.note(WARNING_KIND, &key).is_some();
    if !was_printed {
        // If the note cannot be written, the next call prints the warning too.
        _ = store.put_note(WARNING_KIND, &key, b"");
    }
    was_printed
}

/// Starts `warpcc cache gc` in the background. It ends at once if another one runs already.
pub fn collect_in_background(ourselves: &Path) {
    start_in_background(ourselves, &["cache", "gc"]);
}

/// Starts `warpcc remote upload` in the background. It ends when everything is uploaded, or after a time limit.
pub fn upload_in_background(ourselves: &Path) {
    start_in_background(ourselves, &["remote", "upload", "--background"]);
}

fn start_in_background(ourselves: &Path, args: &[&str]) {
    use std::os::unix::process::CommandExt;
    // The new process is not waited for: it goes on after this one has ended.
    _ = Command::new(ourselves)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
}
