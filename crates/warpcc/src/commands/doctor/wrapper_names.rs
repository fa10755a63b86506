//! Recognises a compiler wrapper: by the name of the file behind its links, or because it is a script.

use std::path::Path;

/// Programs that run in place of a compiler, and call it.
const WRAPPERS: [&str; 8] = [
    "ccache",
    "sccache",
    "distcc",
    "icecc",
    "buildcache",
    "cachepot",
    "fastbuild",
    "reclient",
];

/// The name of the wrapper that a file is a link to.
pub fn wrapper(file: &Path) -> Option<&'static str> {
    let real = file.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    WRAPPERS.into_iter().find(|known| *known == name)
}

/// Whether a file is a script, which may do anything before it calls the compiler.
pub fn is_script(file: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 2];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"#!"
}
