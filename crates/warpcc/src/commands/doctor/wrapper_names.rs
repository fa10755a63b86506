//! Whether a wrapper runs between a build and its compiler: by its real name, or as a script.

use std::path::Path;

/// Programs that stand between a build and its compiler.
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

/// The wrapper that a file really is, through any number of links.
pub fn wrapper(file: &Path) -> Option<&'static str> {
    let real = file.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    WRAPPERS.into_iter().find(|known| *known == name)
}

/// Whether a file is a script, which may do anything before the compiler.
pub fn is_script(file: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 2];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"#!"
}
