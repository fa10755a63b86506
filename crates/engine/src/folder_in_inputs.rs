//! Finds out whether a text that a run read names a mapped folder. The tool may have opened the file that the text names, and a
//! copy of the text in another folder still names the first one. So the result is for this folder only. That costs few hits: a
//! generated text that names its own folder has another content in each folder.

use std::path::Path;

use warpcc_cache::regular_file;
use warpcc_path_map::PathMap;

use crate::traced_inputs::TracedInputs;

/// How programs, libraries and archives begin. They are copied with the toolkit, and hold names that nobody uses.
const NO_TEXT: [&[u8]; 2] = [b"\x7fELF", b"!<arch>\n"];

/// Whether a text that was read names a folder of `path_map`; false if a file cannot be read, which the manifest reports.
pub fn is_named(seen: &TracedInputs, directory: &Path, path_map: &PathMap) -> bool {
    !path_map.is_empty()
        && seen.read.keys().any(|path| {
            let path = directory.join(path);
            let text = regular_file::read(&path).unwrap_or_default();
            !NO_TEXT.iter().any(|start| text.starts_with(start)) && path_map.is_named_in(&text)
        })
}
