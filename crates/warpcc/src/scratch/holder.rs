//! The holder of a scratch folder: the process that has locked it. It is written into the lock file, so that a waiting process
//! can find out whether the holder still works.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use warpcc_budget::proc;

/// A process that holds, or held, a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The process number.
    pub pid: u32,
    /// The start time. A later process with the same number has another one.
    start: u64,
    /// The session. The holder's tools are in the same session, and a daemon is not.
    session: u32,
    /// The namespace of the process numbers.
    namespace: u64,
}

/// The state of a lock's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderState {
    /// It runs.
    Works,
    /// It was stopped, for example with Ctrl-Z.
    Stopped,
    /// It has ended.
    Gone,
    /// It is in another namespace, where this process cannot see it.
    Unknown,
}

impl Holder {
    /// This process.
    pub fn this_process() -> Option<Self> {
        let pid = std::process::id();
        let stat = proc::stat(pid)?;
        Some(Self {
            pid,
            start: stat.start,
            session: stat.session,
            namespace: namespace()?,
        })
    }

    /// Reads the holder from the lock file; `None` where there is no complete line.
    pub fn read(lock: &File) -> Option<Self> {
        let mut bytes = [0; 128];
        let length = lock.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        // A line without its end is still being written.
        let mut words = text.strip_suffix('\n')?.split(' ');
        Some(Self {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            session: words.next()?.parse().ok()?,
            namespace: words.next()?.parse().ok()?,
        })
    }

    /// Writes the holder into the lock file. If that fails, other processes cannot find out whether the holder works.
    pub fn write(&self, lock: &File) {
        let Self {
            pid,
            start,
            session,
            namespace,
        } = self;
        let line = format!("{pid} {start} {session} {namespace}\n");
        _ = lock.set_len(0);
        _ = lock.write_all_at(line.as_bytes(), 0);
    }

    /// The holder's state. Reads one file.
    pub fn state(&self) -> HolderState {
        if namespace() != Some(self.namespace) {
            return HolderState::Unknown;
        }
        match proc::stat(self.pid) {
            Some(stat) if stat.start != self.start || stat.is_over() => HolderState::Gone,
            Some(stat) if stat.is_stopped() => HolderState::Stopped,
            Some(_) => HolderState::Works,
            None => HolderState::Gone,
        }
    }

    /// Whether a descendant of the holder was stopped. Reads a file of every process.
    pub fn has_stopped_tool(&self) -> bool {
        let all = proc::all();
        let parent = |pid: u32| {
            let found = all.iter().find(|(other, _)| *other == pid);
            found.map_or(0, |(_, stat)| stat.parent)
        };
        let is_below = |mut pid: u32| {
            // The processes were not all listed at the same moment, so the parents could form a cycle.
            (0..64).any(|_| {
                pid = parent(pid);
                pid == self.pid
            })
        };
        let mut stopped = all.iter().filter(|(_, stat)| stat.is_stopped());
        stopped.any(|(pid, _)| is_below(*pid))
    }

    /// Whether tools that the holder started in the scratch folder `folder` still run after it has ended. `None` where that
    /// cannot be seen.
    pub fn has_survivors(&self, folder: &Path) -> Option<bool> {
        if namespace() != Some(self.namespace) {
            return None;
        }
        let mut mark = b"TMPDIR=".to_vec();
        mark.extend_from_slice(folder.join("tmp").as_os_str().as_bytes());
        // Each tool has a folder of its own in it.
        let is_mark = |one: &[u8]| {
            let rest = one.strip_prefix(&mark[..]);
            rest.is_some_and(|rest| rest.first().is_none_or(|&next| next == b'/'))
        };
        // A process has no environment for a moment while it executes another program. If it still has none at the third
        // look and is in such a moment, it may be one of the tools.
        let may_work_there = |pid: u32| {
            for _ in 0..3 {
                let environment = environment(pid);
                if !environment.is_empty() {
                    return environment.split(|byte| *byte == 0).any(is_mark);
                }
                if proc::stat(pid).is_some_and(|now| now.is_between) {
                    return true;
                }
            }
            false
        };
        let mut all = proc::all().into_iter();
        Some(all.any(|(pid, stat)| {
            stat.session == self.session
                && !stat.is_over()
                && pid != std::process::id()
                && may_work_there(pid)
        }))
    }
}

/// The environment of a process. It is read at once: if the process executes another program, the rest cannot be read.
fn environment(pid: u32) -> Vec<u8> {
    const MOST: usize = 1 << 20;
    let mut bytes = vec![0; MOST];
    let opened = File::open(format!("/proc/{pid}/environ"));
    let length = opened.and_then(|mut file| file.read(&mut bytes));
    bytes.truncate(length.unwrap_or(0));
    bytes
}

/// The namespace of this process's process number.
fn namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_read_as_written() -> std::io::Result<()> {
        let file = tempfile::tempfile()?;
        assert_eq!(Holder::read(&file), None);
        let Some(us) = Holder::this_process() else {
            return Err(std::io::Error::other("no /proc"));
        };
        us.write(&file);
        assert_eq!(Holder::read(&file), Some(us));
        assert_eq!(us.state(), HolderState::Works);
        let later = Holder {
            start: us.start + 1,
            ..us
        };
        later.write(&file);
        assert_eq!(later.state(), HolderState::Gone);
        let far = Holder { namespace: 1, ..us };
        assert_eq!(far.state(), HolderState::Unknown);
        file.set_len(5)?;
        assert_eq!(Holder::read(&file), None);
        Ok(())
    }

    /// Ends a process with the test.
    struct Ended(std::process::Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }

    #[test]
    fn a_tool_that_becomes_another_is_seen_at_every_moment() {
        let us = Holder::this_process().expect("a holder");
        let folder = Path::new("/a folder of this test");
        let mut shell = std::process::Command::new("/bin/sh");
        let again = [
            "-c",
            "exec /bin/sh -c \"$0\" \"$0\"",
            "exec /bin/sh -c \"$0\" \"$0\"",
        ];
        let shell = shell.args(again).env("TMPDIR", folder.join("tmp")).spawn();
        let _shell = Ended(shell.expect("a shell"));
        let missed = (0..1000).filter(|_| us.has_survivors(folder) != Some(true));
        assert_eq!(missed.count(), 0);
    }
}
