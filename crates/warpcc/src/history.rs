//! Key parts of earlier calls, for `warpcc why`; and the background processes that shrink the cache and upload from it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::{Digest, DiskStore, Hashing, Key, KeyParts, KeySink};

use crate::request::Request;

const KIND: &str = "calls";
const IDENTITY: &str = "warpcc call 1";

/// Notes the parts of a call's key.
pub fn remember(store: &DiskStore, request: &Request, key_parts: &KeyParts) {
    let key = request.identity().key(IDENTITY);
    if let Ok(value) = serde_json::to_vec(key_parts) {
        // Without the note `why` knows less.
        _ = store.put_note(KIND, &key, &value);
    }
}

/// The key parts of the last call with the same identity; `None` where there is no note of one.
pub fn recall(store: &DiskStore, request: &Request) -> Option<KeyParts> {
    let key: Key = request.identity().key(IDENTITY);
    serde_json::from_slice(&store.note(KIND, &key)?).ok()
}

const SIDE_FILES_KIND: &str = "stray";

/// The time after which a call that is known to need files next to its output is tried again.
const SIDE_FILES_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Notes that a call's tools work with files next to its output.
pub fn note_side_files(store: &DiskStore, key: Key) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs();
    // Without the note the next call builds twice, as this one.
    _ = store.put_note(SIDE_FILES_KIND, &key, &seconds.to_le_bytes());
}

/// Whether the call was noted within the last day.
pub fn used_side_files(store: &DiskStore, key: Key) -> bool {
    let note = store.note(SIDE_FILES_KIND, &key);
    let seconds = note.and_then(|note| note.try_into().ok());
    let noted = seconds.map(|s| UNIX_EPOCH + Duration::from_secs(u64::from_le_bytes(s)));
    noted.is_some_and(|at| at.elapsed().is_ok_and(|age| age < SIDE_FILES_AGE))
}

const FREE_KIND: &str = "folder-free";
const FREE: &str = "warpcc folder-free call 1";

/// Whether the same call, of the same sources, was built in another folder before, and would have been answered with
/// `base_dir = "auto"`. Notes it for the next one.
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
    // Without the note nothing is shown.
    _ = store.put_note(FREE_KIND, &key, here.as_bytes());
    before.is_some_and(|before| before.starts_with(format!("{sources}\n").as_bytes()))
}

const WARNING_KIND: &str = "told";

/// Whether the user was told `text` in this build. Notes it for the next call. With a cache that is read-only, every call
/// tells the user.
pub fn was_warned(store: &DiskStore, build: &str, text: &str) -> bool {
    let mut key = Hashing::new("told in a build");
    key.part("build", build.as_bytes());
    key.part("text", text.as_bytes());
    let key = key.finish();
    let told = store.note(WARNING_KIND, &key).is_some();
    if !told {
        // Without the note it is said once more.
        _ = store.put_note(WARNING_KIND, &key, b"");
    }
    told
}

/// Starts `warpcc cache gc` in the background. It ends at once when another collector runs.
pub fn collect_in_background(ourselves: &Path) {
    start_by_itself(ourselves, &["cache", "gc"]);
}

/// Starts an uploader in the background. It ends when nothing waits, or when its time is over.
pub fn upload_in_background(ourselves: &Path) {
    start_by_itself(ourselves, &["remote", "upload", "--background"]);
}

fn start_by_itself(ourselves: &Path, args: &[&str]) {
    use std::os::unix::process::CommandExt;
    // The process outlives us, and init reaps it.
    _ = Command::new(ourselves)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
}
