//! Finds out whether clang read a precompiled header or module. Such a file has the size and time of each header that it was
//! made of. clang looks at these headers, and fails if one has another size or time.
//!
//! gcc's precompiled headers have no times (seen with gcc 12): a header that was edited since is not noticed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;

use warpcc_cache::regular_file;
use warpcc_watch::Observed;

/// The first bytes of clang's precompiled headers and modules.
const MAGIC: [u8; 4] = *b"CPCH";

/// A variable that every clang asks for, and no other compiler.
const ASKED_BY_CLANG: &str = "CCC_OVERRIDE_OPTIONS";

/// The kind in a file's mode, and that of a regular file.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;

/// Whether a clang ran, and it or another program opened such a file. Relative paths are in `directory`.
pub(crate) fn is_read(observed: &Observed, directory: &Path) -> bool {
    let is_asked_for = |names: &BTreeSet<OsString>| names.contains(OsStr::new(ASKED_BY_CLANG));
    let begins_so = |path: &Path| {
        let mut begin = [0; MAGIC.len()];
        let file = regular_file::open(&directory.join(path));
        let is_read = file.and_then(|mut file| file.read_exact(&mut begin));
        is_read.is_ok() && begin == MAGIC
    };
    observed.variables.values().any(is_asked_for)
        && (observed.read.iter())
            .any(|(path, identity)| identity.mode & KIND == FILE && begins_so(path))
}
