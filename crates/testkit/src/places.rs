//! Where `cargo xtask` has put toolkits, and what else the tests need.

use std::path::{Path, PathBuf};

/// The path that a variable names.
pub fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where `cargo xtask toolkit` installs.
pub fn toolkits() -> PathBuf {
    named("WARPCC_TOOLKITS").map_or_else(|| root().join(".toolkits"), |dir| root().join(dir))
}

/// As xtask's `repo::tools_dir`.
pub fn tools() -> PathBuf {
    named("WARPCC_TOOLKITS").map_or_else(
        || root().join(".tools"),
        |dir| root().join(dir).with_file_name("tools"),
    )
}

/// Where results of nvcc are kept for the next run of the tests: beside toolkits that clones share.
pub fn references() -> PathBuf {
    named("WARPCC_TOOLKITS").map_or_else(
        || root().join(".references"),
        |dir| root().join(dir).with_file_name("references"),
    )
}
