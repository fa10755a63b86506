//! Finds out whether clang may take relative names from another folder, because of `-working-directory` in a text that warpcc
//! does not understand: a wrapper, a configuration file, a variable.
//!
//! A clang that gets absolute names shows no sign of this option, and warpcc gives it absolute names for the outputs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use memchr::memmem::Finder;
use rustix::fs::FileType;
use warpcc_watch::Observed;

use crate::compiler_cache::is_compiler_cache;
use crate::known_programs::KnownPrograms;
use crate::own_name;

/// The option of clang and of its front end. The driver also takes it with two dashes, and with its value behind `=`.
const OPTION: &str = "-working-directory";

/// A variable that every clang asks for, and no other compiler.
const ASKED_BY_CLANG: &str = "CCC_OVERRIDE_OPTIONS";

/// Whether a clang ran.
pub fn clang_ran(observed: &Observed) -> bool {
    let is_asked_for = |names: &BTreeSet<OsString>| names.contains(OsStr::new(ASKED_BY_CLANG));
    observed.variables.values().any(is_asked_for)
}

/// Whether a clang ran that may have got the option from a file that was read or from a variable. Relative paths are in
/// `directory`; `is_planned`: the file is an input or a result of the plan's steps.
pub fn may_differ(
    observed: &Observed,
    directory: &Path,
    environment: &[(OsString, OsString)],
    is_planned: &dyn Fn(&Path) -> bool,
    known: &KnownPrograms<'_>,
) -> bool {
    if !clang_ran(observed) {
        return false;
    }
    let finder = Finder::new(OPTION);
    let mut values = environment
        .iter()
        .map(|(_, value)| value.as_encoded_bytes());
    let mut files = observed.read.keys().chain(&observed.processes);
    observed.names_folder
        || values.any(|value| finder.find(value).is_some())
        || files.any(|path| {
            let file = directory.join(path);
            // A compiler contains the names of its options. Another program may be a wrapper.
            !(is_planned(path) || known.is_compiler(&file))
                && own_name::is_in_file(&finder, &file)
                    .unwrap_or_else(|_| may_have_held_options(observed, path, known))
        })
}

/// Whether a file that cannot be read any more may have been one with options: a script may have written it and removed it.
/// The temporary files that compilers and compiler caches write hold code.
fn may_have_held_options(observed: &Observed, path: &Path, known: &KnownPrograms<'_>) -> bool {
    let found = observed.read.get(path.as_os_str());
    let kind = found.map(|found| FileType::from_raw_mode(found.mode));
    let holds_code = observed
        .writers
        .get(path.as_os_str())
        .is_some_and(|program| is_compiler_cache(program) || known.is_compiler(program));
    // Nobody reads options from a device, and a folder has none.
    !(holds_code || matches!(kind, Some(FileType::Directory | FileType::CharacterDevice)))
}
