//! Finds out whether clang read a precompiled header or module. Such a file has the size and time of each header that it was
//! made of. clang looks at these headers, and fails if one has another size or time.
//!
//! gcc's precompiled headers have no times (seen with gcc 12): a header that was edited since is not noticed.

use std::io::Read;
use std::path::Path;

use warpcc_cache::regular_file;
use warpcc_watch::Observed;

use crate::working_directory;

/// The first bytes of clang's precompiled headers and modules.
const MAGIC: [u8; 4] = *b"CPCH";

/// The kind in a file's mode, and that of a regular file.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;

/// Whether a clang ran, and it or another program opened such a file. Relative paths are in `directory`.
pub(crate) fn is_read(observed: &Observed, directory: &Path) -> bool {
    let begins_so = |path: &Path| {
        let mut begin = [0; MAGIC.len()];
        let file = regular_file::open(&directory.join(path));
        let is_read = file.and_then(|mut file| file.read_exact(&mut begin));
        is_read.is_ok() && begin == MAGIC
    };
    working_directory::clang_ran(observed)
        && (observed.read.iter())
            .any(|(path, identity)| identity.mode & KIND == FILE && begins_so(path))
}
