//! Finds what a run wrote or removed besides its outputs: files and devices.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use warpcc_cache::guards;
use warpcc_watch::{Identity, Observed, PathText};

use crate::compiler_cache::is_compiler_cache;
use crate::scene::Scene;

/// The longest tick of the clock that the kernel uses for files.
const TICK: Duration = Duration::from_millis(10);

/// A file that a run wrote or removed besides its outputs. A hit would not repeat that.
pub fn side_effect(observed: &Observed, scene: &Scene<'_>) -> Option<String> {
    if guards::is_off("side-outputs") {
        return None;
    }
    // What is written to the name of a link is written to another file.
    let mut makers = observed.links_made.iter();
    if let Some((link, _)) = makers.find(|(_, program)| !is_compiler_cache(program)) {
        return Some(format!("{} is made as a symbolic link", link.display()));
    }
    let there = |path: &Path| fs::symlink_metadata(scene.directory.join(path)).is_ok();
    // ccache, which nvcc's dry run asks for the compiler's properties, keeps files of its own.
    let is_caches = |path: &Path| {
        let writer = observed.writers.get(path.as_os_str());
        writer.is_some_and(|program| is_compiler_cache(program))
    };
    // The file existed before the run began: the run read old content, then replaced it.
    let was_there = |identity: &Identity| {
        let began = scene.began.duration_since(SystemTime::UNIX_EPOCH);
        let before = began.unwrap_or_default().saturating_sub(TICK).as_nanos();
        identity.mode != 0 && i128::from(identity.ctime_ns) < before as i128
    };
    let rewritten = observed.read.iter().find(|(path, identity)| {
        observed.written.contains_key(path.as_os_str())
            && was_there(identity)
            // bash opens the terminal in this way.
            && !(is_special(identity) && is_harmless_device(identity.special))
            && !(scene.is_own(path) || is_caches(path))
    });
    let whole = |path: &Path| scene.directory.join(path);
    if let Some((path, _)) = rewritten {
        return Some(format!(
            "{} is both read and written",
            whole(path).display()
        ));
    }
    for (path, identity) in &observed.written {
        let special = is_special(identity);
        // The path may be a user's link that leads to a file the next time.
        if scene.is_own(path)
            || is_caches(path)
            || (special && is_harmless_device(identity.special) && is_plain(path))
        {
            continue;
        }
        if special || there(path) {
            return Some(format!("{} is written too", whole(path).display()));
        }
    }
    let removed = |path: &&PathText| {
        !(scene.is_own(path) || is_caches(path) || observed.written.contains_key(path.as_os_str()))
    };
    let removed = observed.removed.iter().find(removed);
    removed.map(|path| format!("{} is removed", whole(path).display()))
}

/// Whether a device, by its number, gives every process the same: `/dev/null` and `/dev/zero`; the terminal, which a shell
/// opens to see whether there is one; random numbers, because any will do.
pub fn is_harmless_device(special: u64) -> bool {
    const fn device(major: u64, minor: u64) -> u64 {
        major << 8 | minor
    }
    [
        device(1, 3),
        device(1, 5),
        device(1, 8),
        device(1, 9),
        device(5, 0),
    ]
    .contains(&special)
}

/// The devices that a run wrote to. The result depends on them: if such a path becomes a regular file, the run would
/// write that file.
pub fn devices_written(observed: &Observed, scene: &Scene<'_>) -> Vec<PathText> {
    let written = observed.written.iter();
    let devices = written.filter(|(path, identity)| is_special(identity) && !scene.is_own(path));
    devices.map(|(path, _)| path.clone()).collect()
}

fn is_special(identity: &Identity) -> bool {
    identity.mode != 0 && identity.mode & 0o170_000 != 0o100_000
}

/// Whether a path contains no links and is in its shortest form.
pub fn is_plain(path: &Path) -> bool {
    let real = path.canonicalize();
    real.is_ok_and(|real| real.as_os_str() == path.as_os_str())
}
