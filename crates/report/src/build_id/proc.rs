//! Reads `/proc` for the processes above ours: two small files each.
//!
//! If a process cannot be read, the list ends there. A nearer build tool may then count as the outermost, which does no harm.

use std::fs::File;
use std::io::Read;

use super::{BuildId, Process, identify};

/// No chain of processes is longer. Parents form no loop, but a number may be reused while the chain is read.
const DEEPEST: usize = 64;
/// The part of a command line that is read: enough to recognise the tool. Compilers above us may have very long ones.
const COMMAND_READ: usize = 2048;

/// Our own process, those above it, and the run of the machine they are in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ancestry {
    /// This process.
    pub own: Process,
    /// Those above it, the nearest first.
    pub ancestors: Vec<Process>,
    /// Tells one run of the machine from another.
    pub boot: String,
}

impl Ancestry {
    /// Reads it for this process. Takes well below 100 µs.
    pub fn read() -> Self {
        let boot = read_start("/proc/sys/kernel/random/boot_id", 64).unwrap_or_default();
        let mut ancestry = Self {
            boot: String::from_utf8_lossy(&boot).trim().to_owned(),
            ..Self::default()
        };
        let Some((own, mut parent)) = process(std::process::id()) else {
            ancestry.own.pid = std::process::id();
            return ancestry;
        };
        ancestry.own = own;
        while parent != 0 && ancestry.ancestors.len() < DEEPEST {
            let Some((mut process, above)) = process(parent) else {
                break;
            };
            // Beyond the session nothing counts, see `identify`.
            if process.session != ancestry.own.session {
                break;
            }
            let command = read_start(&format!("/proc/{parent}/cmdline"), COMMAND_READ);
            process.args = words(&command.unwrap_or_default());
            // Nor beyond the shell that a person types into.
            let typed_into = super::is_typed_into(&process);
            ancestry.ancestors.push(process);
            if typed_into {
                break;
            }
            parent = above;
        }
        ancestry
    }

    /// The build this process belongs to; `given` is what the user said it is.
    pub fn build(&self, given: Option<&str>) -> BuildId {
        identify(&self.own, &self.ancestors, &self.boot, given)
    }

    /// A number for this call that no other has.
    pub fn invocation_id(&self) -> u64 {
        self.own.invocation_id(&self.boot)
    }
}

/// A process without its command line, and the number of its parent.
fn process(pid: u32) -> Option<(Process, u32)> {
    let mut stat = [0; 1024];
    let count = File::open(format!("/proc/{pid}/stat"))
        .ok()?
        .read(&mut stat);
    let (mut process, parent) = parse_stat(stat.get(..count.ok()?)?)?;
    process.pid = pid;
    Some((process, parent))
}

/// The start of a small file in one read, which is how the kernel answers for `/proc`.
fn read_start(path: &str, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; most];
    let count = File::open(path).ok()?.read(&mut bytes).ok()?;
    bytes.truncate(count);
    Some(bytes)
}

/// `pid (name) state ppid pgrp session … starttime`, where the name may hold anything.
fn parse_stat(stat: &[u8]) -> Option<(Process, u32)> {
    let name = stat.iter().position(|byte| *byte == b'(')? + 1;
    let rest = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(rest + 1..)?).ok()?;
    // Behind the state.
    let mut fields = fields.split(' ').skip(2);
    let parent = fields.next()?.parse().ok()?;
    let process = Process {
        pid: 0,
        session: fields.nth(1)?.parse().ok()?,
        started: fields.nth(15)?.parse().ok()?,
        name: String::from_utf8_lossy(stat.get(name..rest)?).into_owned(),
        args: Vec::new(),
    };
    Some((process, parent))
}

fn words(command: &[u8]) -> Vec<String> {
    let command = command.strip_suffix(b"\0").unwrap_or(command);
    if command.is_empty() {
        return Vec::new();
    }
    let words = command.split(|byte| *byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = b"12 (a) b (c) S 11 12 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2";
        let (process, parent) = parse_stat(stat).expect("parsed");
        assert_eq!(process.name, "a) b (c");
        assert_eq!((parent, process.session, process.started), (11, 7, 9876));
        assert_eq!(parse_stat(b"12 (a"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn our_own_ancestors_are_found() {
        let ancestry = Ancestry::read();
        assert_eq!(ancestry.own.pid, std::process::id());
        assert!(!ancestry.boot.is_empty());
        assert!(ancestry.own.started > 0);
        assert_eq!(words(b"a\0\0b\0"), ["a", "", "b"]);
        // Whatever runs the tests, the answer is the same twice.
        assert_eq!(ancestry.build(None), Ancestry::read().build(None));
    }
}
