//! The folders of this checkout: the root, the build folder, and the folders of fetched files.

use std::env;
use std::path::{Path, PathBuf};

/// The repository's root: the parent of `xtask/`.
///
/// Cargo gives the path when it runs us. A binary started by hand uses the folder it was built in,
/// which need not exist on another machine.
pub fn root() -> PathBuf {
    let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_dir
        .parent()
        .map_or_else(|| manifest_dir.clone(), Path::to_path_buf)
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Where toolkits are installed: `WARPCC_TOOLKITS`, so that clones can share, or `.toolkits`.
pub fn toolkits_dir() -> PathBuf {
    env::var_os("WARPCC_TOOLKITS").map_or_else(|| root().join(".toolkits"), |dir| root().join(dir))
}

/// Where programs are installed that only the tests need: next to toolkits that clones share, or else in `.tools`.
pub fn tools_dir() -> PathBuf {
    env::var_os("WARPCC_TOOLKITS").map_or_else(
        || root().join(".tools"),
        |dir| root().join(dir).with_file_name("tools"),
    )
}

/// Where roots of other systems are kept: next to toolkits that clones share, or else in `.roots`.
pub fn roots_dir() -> PathBuf {
    env::var_os("WARPCC_TOOLKITS").map_or_else(
        || root().join(".roots"),
        |dir| root().join(dir).with_file_name("roots"),
    )
}

/// Where real projects' sources are kept: next to toolkits that clones share, so that those share
/// them too, or else in `.workloads`.
pub fn sources_dir() -> PathBuf {
    env::var_os("WARPCC_TOOLKITS").map_or_else(
        || root().join(".workloads"),
        |dir| root().join(dir).with_file_name("workloads"),
    )
}
