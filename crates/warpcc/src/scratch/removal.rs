//! Removes a scratch folder, also while a killed tool still writes to it.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The scratch folder and the folders in it, outer ones first.
pub(super) const FOLDERS: [&str; 6] = ["", "k", "k/real", "k/host", "out", "tmp"];
/// The folder in the scratch folder for the watch library, where the library cannot be in the cache.
pub const WATCH: &str = "watch";

/// How long a killed tool may take to end.
const TOOL_END: Duration = Duration::from_secs(1);

/// Removes the folder and its lock, and the parent if nothing else is in it.
pub(super) fn remove(path: &Path, lock_path: &Path) {
    // Files that cannot be removed do no harm: the next process that uses the name empties the folder, and `sweep` removes
    // folders that are not used again.
    remove_while_others_write(path);
    let _ = fs::remove_file(lock_path);
    if let Some(root) = path.parent() {
        let _ = fs::remove_dir(root); // Only when it is empty.
    }
}

/// Removes the folder, again and again: a tool that was just killed, or a thread of this process, may still write a file into
/// a folder that was empty a moment ago.
fn remove_while_others_write(path: &Path) {
    let began = Instant::now();
    while let Err(error) = fs::remove_dir_all(path) {
        if error.kind() != io::ErrorKind::DirectoryNotEmpty || began.elapsed() > TOOL_END {
            // Without free file descriptors folders cannot be listed. Then no files were written either, and the empty
            // folders are removed by name.
            for folder in [WATCH].into_iter().chain(FOLDERS.into_iter().rev()) {
                _ = fs::remove_dir(path.join(folder));
            }
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}
