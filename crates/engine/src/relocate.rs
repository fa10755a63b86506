//! Steps whose results are the same in every clone (docs/keys.md, Clones): what the tools see of the user's folders
//! is their fixed names, and what people see are the folders.
//!
//! The preprocessors read the real files. Their line markers are then renamed, so that cudafe++ and cicc know fixed
//! names alone; `__FILE__`, `__builtin_FILE` and the host compiler's debug information go through its prefix maps. The
//! host compiler itself gets the real names back, because it looks into the sources to show a line in a message.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use warpcc_cache::roots::BASE;
use warpcc_cache::{Digest, Hashing, KeySink, Roots};
use warpcc_plan::{Arg, Part, Step, TaskGraph, Tool, overlap, relocate};

use crate::artifact::Artifacts;
use crate::run::RunOptions;

/// What a host compiler says of a prefix map that it does not know.
const UNKNOWN_MAP: &[u8] = b"-prefix-map";

/// The error for a host compiler without prefix maps (gcc before 8, clang before 10).
pub const NO_PREFIX_MAP: &str =
    "the host compiler knows no prefix map, which WARPCC_BASE_DIR needs";

/// What stands for the private folder in debug information.
const PRIVATE: &str = "private";

/// Flags of host compiler and linkers before a path that says where to look, and is not written down.
const SEARCHED: [&str; 7] = [
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-I",
    "-L",
];

/// An argument as it counts in a key.
pub fn fixed_argument<'a>(roots: &Roots, text: &'a str) -> Cow<'a, str> {
    if roots.is_empty() {
        return text.into();
    }
    if text.starts_with('/') {
        return roots.fixed(text);
    }
    for flag in SEARCHED {
        if let Some(path) = text.strip_prefix(flag).filter(|p| p.starts_with('/')) {
            return format!("{flag}{}", roots.fixed(path)).into();
        }
    }
    for flag in PREFIX_MAPS {
        if let Some((old, new)) = text.strip_prefix(flag).and_then(|m| m.split_once('=')) {
            return format!("{flag}{}={new}", roots.fixed(old)).into();
        }
    }
    text.into()
}

/// Flags by which people leave folders out of objects themselves; what is mapped is not written down.
pub const PREFIX_MAPS: [&str; 3] = [
    "-ffile-prefix-map=",
    "-fmacro-prefix-map=",
    "-fdebug-prefix-map=",
];

/// A variable as it counts in a key: of a list of folders, each by its fixed name.
pub fn fixed_list<'a>(roots: &Roots, value: &'a [u8]) -> Cow<'a, [u8]> {
    if roots.is_empty() {
        return value.into();
    }
    let parts = value.split(|b| *b == b':').map(|p| roots.fixed_bytes(p));
    parts.collect::<Vec<_>>().join(&b':').into()
}

/// What the host compiler is told besides nvcc's words.
pub fn host_arguments(step: &Step, graph: &TaskGraph, roots: &Roots) -> Vec<OsString> {
    let flag = match step.tool {
        _ if roots.is_empty() => return Vec::new(),
        Tool::Preprocess => "-fmacro-prefix-map",
        Tool::HostCompile | Tool::HostAssembly => "-ffile-prefix-map",
        _ => return Vec::new(),
    };
    let private = graph.private.trim_end_matches('/');
    let maps = roots.pairs().into_iter();
    let mut arguments: Vec<OsString> = maps
        .map(|(folder, marker)| format!("{flag}={folder}={marker}").into())
        .collect();
    if !private.is_empty() && step.has_debug_information() {
        arguments.push(format!("{flag}={private}={BASE}{PRIVATE}").into());
    }
    arguments
}

/// Whether a host compiler failed because of [`host_arguments`].
pub fn knows_no_map(stderr: &[u8], roots: &Roots) -> bool {
    !roots.is_empty() && memchr::memmem::find(stderr, UNKNOWN_MAP).is_some()
}

/// Where a step runs. cicc and ptxas write their directory into debug information, and cicc into LTO and OptiX code; of
/// what they are given nothing is relative to it, so it can be one that is the same everywhere.
pub fn directory<'a>(step: &Step, artifacts: &Artifacts<'_>, options: &RunOptions<'a>) -> &'a Path {
    let absolute = |part: &Part| match part {
        Part::File(id) => artifacts.path(*id).is_absolute(),
        Part::Text(_) => true,
    };
    let debug = step.has_debug_information();
    let may_move = match step.tool {
        Tool::Cicc | Tool::EarlyStub => !debug || fixed_directory(options).is_some(),
        Tool::Ptxas => debug && fixed_directory(options).is_some(),
        _ => false,
    };
    if may_move
        && !options.roots.is_empty()
        && step.args.iter().flat_map(|arg| &arg.0).all(absolute)
    {
        return Path::new("/");
    }
    options.directory
}

/// The fixed name of the working directory, if it is below a root.
fn fixed_directory(options: &RunOptions<'_>) -> Option<String> {
    let directory = options.directory.to_str()?;
    match options.roots.fixed(directory) {
        Cow::Owned(fixed) => Some(fixed),
        Cow::Borrowed(_) => None,
    }
}

/// Where the line markers of a preprocessed text are kept as the preprocessor wrote them.
pub fn markers_beside(text: &Path) -> PathBuf {
    let mut name = text.as_os_str().to_owned();
    name.push(".markers");
    name.into()
}

/// Gives the files in a preprocessed text their fixed names. Where line tables are asked for, relative names
/// become fixed ones too: cicc would make them absolute.
///
/// # Errors
/// The text cannot be read or written.
pub fn rename_preprocessed(
    path: &Path,
    graph: &TaskGraph,
    options: &RunOptions<'_>,
) -> io::Result<()> {
    let text = fs::read(path)?;
    let debug = graph.steps.iter().any(Step::has_debug_information);
    let here = fixed_directory(options).filter(|_| debug);
    if options.rule.is_some() {
        fs::write(markers_beside(path), relocate::only_markers(&text))?;
    }
    let roots = options.roots;
    let renamed = relocate::rename_markers(&text, &|path| match (path.first()?, &here) {
        (b'/', _) => Some(roots.fixed_bytes(path)),
        (b'<', _) | (_, None) => None,
        (_, Some(here)) => Some([here.as_bytes(), HERE, path].concat().into()),
    });
    fs::write(path, renamed)
}

/// Between the working directory and a name that was relative to it, so that a message can have it back as it was.
const HERE: &[u8] = b"/./";

/// What a tool said, with the names that people know.
pub fn real_message(text: &[u8], options: &RunOptions<'_>) -> Vec<u8> {
    let roots = options.roots;
    let Some(here) = fixed_directory(options).filter(|_| !text.is_empty()) else {
        return roots.real_text(text);
    };
    let here = [here.as_bytes(), HERE].concat();
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, &here) {
        out.extend_from_slice(&text[done..at]);
        done = at + here.len();
    }
    out.extend_from_slice(&text[done..]);
    roots.real_text(&out)
}

/// Gives the files in cudafe++'s text their real names back.
///
/// # Errors
/// The text cannot be read or written.
pub fn restore_names(path: &Path, options: &RunOptions<'_>) -> io::Result<()> {
    let text = fs::read(path)?;
    let here = fixed_directory(options).map(|here| [here.as_bytes(), HERE].concat());
    let renamed = relocate::rename_markers(&text, &|path| {
        let relative = here.as_ref().and_then(|here| path.strip_prefix(&here[..]));
        match relative {
            Some(relative) => Some(relative.into()),
            None => options.roots.real(path),
        }
    });
    fs::write(path, renamed)
}

/// With no external function to name a module after, a front end ends its id in the CRC-32 of its directory and its
/// process id. What this gives instead, from what went in; `None` for an id that can stay.
pub fn lasting_module_id(id: &str, step: &Step, artifacts: &Artifacts<'_>) -> Option<String> {
    if id.is_empty() || overlap::is_lasting_module_id(id) {
        return None;
    }
    let (head, _) = id.trim_end().rsplit_once('_')?;
    let (head, _) = head.rsplit_once('_')?;
    let mut sink = Hashing::new("warpcc lasting module id 1");
    sink.part("head", head.as_bytes());
    for arg in step.args.iter().filter_map(Arg::as_text) {
        sink.part("argument", arg.as_bytes());
    }
    for id in step
        .reads
        .iter()
        .filter_map(|id| artifacts.digest(*id).ok())
    {
        sink.part("input", Digest::to_string(&id).as_bytes());
    }
    // A letter before the digits tells it from a process id.
    Some(format!("{head}_w{}", &sink.finish().hex()[..15]))
}

/// The module id in the names of a device code's internal symbols, where there are any: cicc that makes the id itself
/// (`-ptx`, `-cubin`) writes no file with it (seen on 13.0 and 13.5).
pub fn module_id_in(code: &[u8]) -> Option<String> {
    // Each is written behind the length of the mark and the id, or of the id alone.
    [("_INTERNAL_", 9), ("_GLOBAL__N_", 11)]
        .into_iter()
        .find_map(|(mark, counted)| {
            memchr::memmem::find_iter(code, mark).find_map(|at| {
                let digits = code[..at].iter().rev().take_while(|b| b.is_ascii_digit());
                let number = &code[at - digits.count()..at];
                let length: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
                let id = code.get(at + counted..at.checked_add(length)?)?;
                let is_id = id.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
                (is_id && id.len() > 10).then(|| String::from_utf8_lossy(id).into_owned())
            })
        })
}

/// The flag that makes a front end write a module id; without it the file is read.
pub const MAKES_MODULE_ID: &str = "--gen_module_id_file";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_behind_its_length() {
        let ptx = b".global .u32 _ZN40_INTERNAL_aa38fbbf_4_n_cu_506184d9_3123042_GLOBAL__N__aa38fbbf_4_n_cu_506184d9_312301dE;";
        assert_eq!(
            module_id_in(ptx).as_deref(),
            Some("_aa38fbbf_4_n_cu_506184d9_31230")
        );
        let kernel = b".entry _ZN42_GLOBAL__N__aa38fbbf_4_n_cu_506184d9_312301kEPi(";
        assert_eq!(
            module_id_in(kernel).as_deref(),
            Some("_aa38fbbf_4_n_cu_506184d9_31230")
        );
        for none in [&b"_INTERNAL_"[..], b"9_INTERNAL_", b"99_GLOBAL__N_x"] {
            assert_eq!(module_id_in(none), None);
        }
    }
}
