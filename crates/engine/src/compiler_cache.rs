//! Recognises ccache and similar programs under a compiler's name. warpcc runs the compiler behind them instead.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::search_path::{find_program, is_executable};

/// Programs that are installed under a compiler's name and look for the compiler behind them in `PATH`.
pub const CACHES: &[&str] = &["ccache", "sccache"];

/// Finds a program as [`find_program`] does. If a compiler cache has the compiler's name, this finds the compiler that
/// the cache would run. There are three reasons: warpcc caches the result already; the files that the cache reads for
/// itself change with every call; and a cache that waits for a server would delay the call.
pub fn find_compiler(name: &str, path: Option<&OsStr>, directory: &Path) -> Option<PathBuf> {
    let found = find_program(name, path, directory)?;
    if !is_cache(&found) {
        return Some(found);
    }
    let base = Path::new(name).file_name()?;
    let behind = std::env::split_paths(path?)
        .map(|folder| directory.join(folder).join(base))
        .find(|file| is_executable(file) && !is_cache(file));
    behind.or(Some(found))
}

/// Whether a program is a compiler cache, by its own file.
pub fn is_compiler_cache(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| CACHES.contains(&name))
}

fn is_cache(file: &Path) -> bool {
    let Ok(real) = file.canonicalize() else {
        return false;
    };
    // If it is called by its own name, the user wants it.
    file.file_name() != real.file_name()
        && real
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| CACHES.contains(&n))
}

/// The reason shown for the bypass: nvcc runs ccache, which runs the program that its settings name.
pub const CHOOSES: &str = "settings of a compiler cache choose what it runs";

/// ccache's settings that say which program it runs, as variables and in its files.
const CHOOSING: [(&str, &str); 4] = [
    ("CCACHE_COMPILER", "compiler"),
    ("CCACHE_PREFIX", "prefix_command"),
    ("CCACHE_PREFIX_CPP", "prefix_command_cpp"),
    ("CCACHE_PATH", "path"),
];

/// Whether the compiler cache that has this name would run another program than the compiler behind it.
pub fn chooses_another(environment: &[(OsString, OsString)]) -> bool {
    let variable = |name: &str| {
        let mut all = environment.iter().rev();
        let value = all.find(|(n, _)| n == name).map(|(_, value)| value);
        value.filter(|value| !value.is_empty())
    };
    if CHOOSING.iter().any(|(name, _)| variable(name).is_some()) {
        return true;
    }
    let below = |name: &str, rest: &str| Some(Path::new(variable(name)?).join(rest));
    let files = [
        below("CCACHE_CONFIGPATH", ""),
        below("CCACHE_CONFIGPATH2", ""),
        below("CCACHE_DIR", "ccache.conf"),
        below("XDG_CONFIG_HOME", "ccache/ccache.conf"),
        below("HOME", ".config/ccache/ccache.conf"),
        below("HOME", ".ccache/ccache.conf"),
        Some("/etc/ccache.conf".into()),
    ];
    let chooses = |text: &str| {
        let mut settings = text.lines().filter_map(|line| line.split_once('='));
        let named = |(name, value): (&str, &str)| {
            let known = CHOOSING.iter().any(|(_, options)| name.trim() == *options);
            known && !value.trim().is_empty()
        };
        settings.any(named)
    };
    let mut texts = files
        .iter()
        .flatten()
        .filter_map(|file| fs::read_to_string(file).ok());
    texts.any(|text| chooses(&text))
}

/// The folders in which ccache has a compiler write, before it takes the result. Their files have random names, and are gone
/// afterwards.
pub fn temporary_folders(environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let below = |name: &str, rest: &str| {
        let mut all = environment.iter().rev();
        let value = all.find(|(n, _)| n == name).map(|(_, value)| value)?;
        Some(Path::new(value).join(rest))
    };
    let folders = [
        below("CCACHE_TEMPDIR", ""),
        below("CCACHE_DIR", "tmp"),
        below("XDG_RUNTIME_DIR", "ccache-tmp"),
        below("XDG_CACHE_HOME", "ccache/tmp"),
        below("HOME", ".cache/ccache/tmp"),
        below("HOME", ".ccache/tmp"),
        Some(
            format!(
                "/run/user/{}/ccache-tmp",
                rustix::process::getuid().as_raw()
            )
            .into(),
        ),
    ];
    let folders = folders.into_iter().flatten();
    // Without a name, one of these would be a whole other folder.
    folders
        .filter(|folder| folder.is_absolute() && folder.components().count() > 2)
        .collect()
}
