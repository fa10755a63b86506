//! What /proc says about processes: state, parent, start, memory of a tree.

use std::fs;
use std::path::PathBuf;

/// A line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// R, S, D, T, t, Z, X.
    pub state: u8,
    /// The parent, 0 for the first of a namespace.
    pub parent: u32,
    /// Clock ticks after boot: tells a process from a later one with its number.
    pub start: u64,
}

impl Stat {
    /// Whether the process was stopped by a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Whether it has ended, even if nobody has waited for it.
    pub fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Reads the state of `pid`; nothing if there is no such process.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    // The name may hold anything, spaces and parentheses included; the last one closes it.
    let close = bytes.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let state = *words.next()?.as_bytes().first()?;
    let parent = words.next()?.parse().ok()?;
    // Of the whole line the 22nd; state is the third and parent the fourth.
    let start = words.nth(17)?.parse().ok()?;
    Some(Stat {
        state,
        parent,
        start,
    })
}

/// Resident memory in KiB of `root` and all that it started and that is still its descendant,
/// counting shared pages in each.
pub fn tree_kib(root: u32) -> u64 {
    let page_kib = rustix::param::page_size() as u64 / 1024;
    let mut pages = 0u64;
    let mut seen = 0;
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        seen += 1;
        // A compiler driver has a handful of children; a cycle or a bomb must not hold us up.
        if seen > 256 {
            break;
        }
        pages = pages.saturating_add(resident_pages(pid).unwrap_or(0));
        left.extend(children(pid));
    }
    pages.saturating_mul(page_kib)
}

fn resident_pages(pid: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{pid}/statm"))
        .ok()?
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// The children of all threads of `pid`. Kernels without the list (CONFIG_PROC_CHILDREN) report
/// none, and a tree is then its root.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let list: PathBuf = thread.path().join("children");
        if let Ok(text) = fs::read_to_string(list) {
            found.extend(
                text.split_ascii_whitespace()
                    .filter_map(|w| w.parse::<u32>().ok()),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let line = b"12 (a) R (b) S 7 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 991 8 9 1";
        assert_eq!(
            parse_stat(line),
            Some(Stat {
                state: b'S',
                parent: 7,
                start: 991
            })
        );
        assert_eq!(parse_stat(b"12 (a"), None);
        assert_eq!(parse_stat(b"12 (a) S"), None);
    }

    #[test]
    fn this_process_is_there() {
        let me = stat(std::process::id()).expect("own line");
        assert!(!me.is_stopped() && !me.is_over() && me.start > 0);
        assert!(tree_kib(std::process::id()) > 100);
        assert_eq!(stat(u32::MAX), None);
    }
}
