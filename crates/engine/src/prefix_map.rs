//! Tells host compilers which folders' names do not count: their prefix maps change `__FILE__`, `__builtin_FILE` and debug
//! information.

use std::borrow::Cow;
use std::ffi::OsString;

use warpcc_path_map::{BASE, PathMap};
use warpcc_plan::{Step, TaskGraph, Tool};

/// The text in a host compiler's message about a prefix map that it does not know.
const UNKNOWN_MAP: &[u8] = b"-prefix-map";

/// The error for a host compiler without prefix maps (gcc before 8, clang before 10).
pub const NO_PREFIX_MAP: &str = "the host compiler has no prefix maps, which WARPCC_BASE_DIR needs";

/// The name of the private folder in debug information.
const PRIVATE: &str = "private";

/// Options by which users keep folders out of objects themselves. Mapped folders in their values do not reach the object.
pub const PREFIX_MAPS: [&str; 3] = [
    "-ffile-prefix-map=",
    "-fmacro-prefix-map=",
    "-fdebug-prefix-map=",
];

/// Options of the host compiler and linkers whose value is a search path, which does not reach the object.
const SEARCHED: [&str; 7] = [
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-I",
    "-L",
];

/// The form of an argument in a key.
pub fn fixed_argument<'a>(path_map: &PathMap, text: &'a str) -> Cow<'a, str> {
    if path_map.is_empty() {
        return text.into();
    }
    if text.starts_with('/') {
        return path_map.fixed(text);
    }
    for flag in SEARCHED {
        if let Some(path) = text.strip_prefix(flag).filter(|p| p.starts_with('/')) {
            return format!("{flag}{}", path_map.fixed(path)).into();
        }
    }
    for flag in PREFIX_MAPS {
        if let Some((old, new)) = text.strip_prefix(flag).and_then(|m| m.split_once('=')) {
            return format!("{flag}{}={new}", path_map.fixed(old)).into();
        }
    }
    text.into()
}

/// The arguments that the host compiler gets besides nvcc's.
pub fn host_arguments(step: &Step, graph: &TaskGraph, path_map: &PathMap) -> Vec<OsString> {
    let flag = match step.tool {
        _ if path_map.is_empty() => return Vec::new(),
        Tool::Preprocess => "-fmacro-prefix-map",
        Tool::HostCompile | Tool::HostAssembly => "-ffile-prefix-map",
        _ => return Vec::new(),
    };
    let private = graph.private.trim_end_matches('/');
    let maps = path_map.pairs().into_iter();
    let mut arguments: Vec<OsString> = maps
        .map(|(folder, marker)| format!("{flag}={folder}={marker}").into())
        .collect();
    if !private.is_empty() && step.has_debug_information() {
        arguments.push(format!("{flag}={private}={BASE}{PRIVATE}").into());
    }
    arguments
}

/// Whether a host compiler failed because of [`host_arguments`].
pub fn knows_no_map(stderr: &[u8], path_map: &PathMap) -> bool {
    !path_map.is_empty() && memchr::memmem::find(stderr, UNKNOWN_MAP).is_some()
}
