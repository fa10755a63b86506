//! Which processes this one was started by.

use crate::proc;

/// The parent, its parent and so on, up to the first of the namespace. They were all there before
/// us, so none of them needs asking twice.
pub fn ancestors() -> Vec<u32> {
    let mut found = Vec::new();
    let mut pid = std::process::id();
    // Deeper than any build; a table that changes under us must not make this endless.
    for _ in 0..128 {
        match proc::stat(pid) {
            Some(stat) if stat.parent > 0 => {
                found.push(stat.parent);
                pid = stat.parent;
            }
            _ => break,
        }
    }
    found
}
