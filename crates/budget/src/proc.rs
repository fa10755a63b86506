//! Reads /proc for processes: state, parent, start, memory of a tree.

use std::fs;
use std::path::PathBuf;

use crate::small_file::field;

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// R, S, D, T, t, Z, X.
    pub state: u8,
    /// The parent, 0 for the first of a namespace.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Clock ticks of processor time, in user and kernel mode, with those of children that have ended and were waited for.
    pub ticks: u64,
    /// The number of its threads.
    pub threads: u32,
    /// The start time in clock ticks after boot. It distinguishes a process from a later one with the same number.
    pub start: u64,
    /// It is becoming another program, so its environment is not known yet (proc_pid_environ(5) says nothing of
    /// that, and is empty). A thread of the kernel, or a process that ends, has no memory and no environment either:
    /// it is not between two programs.
    pub is_between: bool,
}

impl Stat {
    /// Whether the process was stopped by a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Whether it has ended, even if its parent has not waited for it.
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
    let group = words.next()?.parse().ok()?;
    let session = words.next()?.parse().ok()?;
    // Of the whole line the 14th to 17th; state is the third and parent the fourth.
    let mut ticks = 0u64;
    for skip in [7, 0, 0, 0] {
        // The children's are signed, and never below nothing.
        let part: i64 = words.nth(skip)?.parse().ok()?;
        ticks = ticks.saturating_add(part.unsigned_abs());
    }
    let threads = words.nth(2)?.parse().ok()?;
    let start = words.nth(1)?.parse().ok()?;
    // The 23rd is its size, 0 for a thread of the kernel. The 26th, where the code begins, is 1 for a process that we may
    // not look at. The 51st is where the environment ends.
    let (size, code, environment) = (words.next(), words.nth(2), words.nth(24));
    let has_memory = size.is_some_and(|size| size != "0");
    let is_between = has_memory && code.is_some_and(|at| at != "1") && environment == Some("0");
    Some(Stat {
        state,
        parent,
        group,
        session,
        ticks,
        threads,
        start,
        is_between,
    })
}

/// Every process that can be seen, with its number.
pub fn all() -> Vec<(u32, Stat)> {
    let Ok(listing) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = listing.flatten().filter_map(|found| {
        let name = found.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    numbers.filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// The states of all threads of `pid`; the line of a process has its first thread's.
pub fn thread_states(pid: u32) -> Vec<u8> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lines = threads.flatten().map(|thread| thread.path().join("stat"));
    lines
        .filter_map(|line| Some(parse_stat(&fs::read(line).ok()?)?.state))
        .collect()
}

/// What a process and all that it started use, as far as these are still its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeUse {
    /// Resident memory in KiB, counting shared pages in each process.
    pub resident_kib: u64,
    /// Memory in KiB that the kernel has moved to swap.
    pub swapped_kib: u64,
    /// Processor time in nanoseconds, with that of children that have ended and were waited for.
    pub cpu: u64,
}

/// What `root` and its descendants use. What cannot be read counts as nothing.
pub fn tree_use(root: u32) -> TreeUse {
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let mut sum = TreeUse::default();
    let mut seen = 0;
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        seen += 1;
        // A compiler driver has few children. The limit is for a cycle, or for a program that starts processes without
        // end.
        if seen > 256 {
            break;
        }
        let ticks = stat(pid).map_or(0, |stat| stat.ticks);
        let (resident, swapped) = memory_of(pid);
        sum.resident_kib = sum.resident_kib.saturating_add(resident);
        sum.swapped_kib = sum.swapped_kib.saturating_add(swapped);
        sum.cpu = sum.cpu.saturating_add(ticks.saturating_mul(tick));
        left.extend(children(pid));
    }
    sum
}

/// Resident and swapped KiB. A process that has ended has none.
fn memory_of(pid: u32) -> (u64, u64) {
    // The name of a program may be in any encoding.
    let bytes = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let kib = |name| field(&text, name).unwrap_or(0);
    (kib("VmRSS:"), kib("VmSwap:"))
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
        let line = b"12 (a) R (b) S 7 12 13 0 -1 4194304 5 6 7 8 1 2 3 4 20 0 3 0 991 8 9 1";
        assert_eq!(
            parse_stat(line),
            Some(Stat {
                state: b'S',
                parent: 7,
                group: 12,
                session: 13,
                ticks: 10,
                threads: 3,
                start: 991,
                is_between: false
            })
        );
        assert_eq!(parse_stat(b"12 (a"), None);
        assert_eq!(parse_stat(b"12 (a) S"), None);
    }

    #[test]
    fn a_process_without_an_environment_is_not_between_two_programs() {
        let line = |size: &str, code: &str, environment: &str| {
            let before = "12 (a) S 7 12 13 0 -1 0 5 6 7 8 1 2 3 4 20 0 3 0 991";
            let between = "0 ".repeat(23);
            let text = format!("{before} {size} 9 1 {code} 99 {between}{environment} 0");
            parse_stat(text.as_bytes()).expect("a line").is_between
        };
        assert!(line("8", "0", "0") && line("8", "4096", "0"));
        assert!(!line("8", "1", "0"), "a foreign process");
        assert!(!line("8", "4096", "8192"));
        assert!(!line("0", "0", "0"), "a thread of the kernel");
    }

    /// A program that no session was made for shares the kernel's: there are machines whose CI runs so.
    #[test]
    fn no_thread_of_the_kernel_is_between_two_programs() {
        let is_kernel = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).is_err();
        let all = all().into_iter();
        let idle = all.filter(|(pid, stat)| stat.session == 0 && is_kernel(*pid));
        let found: Vec<_> = idle.filter(|(_, stat)| stat.is_between).collect();
        assert_eq!(found, []);
    }

    #[test]
    fn this_process_is_there() {
        let me = stat(std::process::id()).expect("own line");
        assert!(!me.is_stopped() && !me.is_over() && me.start > 0);
        assert!(!me.is_between);
        assert!(tree_use(std::process::id()).resident_kib > 100);
        assert_eq!(stat(u32::MAX), None);
    }
}
