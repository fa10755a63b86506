//! The processes above this one.

use crate::proc;

/// The parent, its parent and so on, up to the first of the namespace, each with its start. They
/// were all there before us, so each needs to be asked only once.
///
/// With the start, because a board may be shared with another namespace that has the same numbers.
pub fn ancestors() -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    let Some(mut pid) = proc::stat(std::process::id()).map(|me| me.parent) else {
        return found;
    };
    // Deeper than any build; a table that changes under us must not make this endless.
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
