//! The processes above this one.

use crate::proc;

/// The parent, its parent and so on, up to the first process of the namespace, each with its start time. They all
/// started before this process, so each is read only once.
///
/// The start times are needed because a board may be shared with another namespace that has the same process numbers.
pub fn ancestors() -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    let Some(mut pid) = proc::stat(std::process::id()).map(|me| me.parent) else {
        return found;
    };
    // No build is deeper. The limit ends the loop if the processes change while they are read.
    for _ in 0..128 {
        match proc::stat(pid) {
            Some(stat) => {
                found.push((pid, stat.start));
                pid = stat.parent;
            }
            None => break,
        }
    }
    found
}
