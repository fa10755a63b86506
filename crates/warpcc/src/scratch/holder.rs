//! The holder of a private folder, written into its lock, so that a waiting process can see whether to go on waiting.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use warpcc_budget::proc;

/// A process that holds, or held, a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// When it was started: tells it from a later process with its number.
    start: u64,
    /// Its session, which its tools share and a daemon does not.
    session: u32,
    /// The namespace in which the numbers mean something.
    namespace: u64,
}

/// The state of a lock's holder, as far as it can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderState {
    /// It is there.
    Works,
    /// It was stopped, or one of its tools was.
    Stopped,
    /// It has ended.
    Gone,
    /// It lives where we cannot look.
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

    /// The holder that is written in the lock file; `None` where no whole line is there yet.
    pub fn read(lock: &File) -> Option<Self> {
        let mut bytes = [0; 128];
        let length = lock.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        // A line that is being written is not there yet.
        let mut words = text.strip_suffix('\n')?.split(' ');
        Some(Self {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            session: words.next()?.parse().ok()?,
            namespace: words.next()?.parse().ok()?,
        })
    }

    /// Writes the holder into the lock file. Where that fails, other processes cannot tell whether the holder works.
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

    /// How it is. Cheap.
    pub fn standing(&self) -> HolderState {
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

    /// Whether something that it started, and that is still below it, was stopped. Looks at every process.
    pub fn has_stopped_tool(&self) -> bool {
        let all = proc::all();
        let parent = |pid: u32| {
            let found = all.iter().find(|(other, _)| *other == pid);
            found.map_or(0, |(_, stat)| stat.parent)
        };
        let is_below = |mut pid: u32| {
            // Processes that come and go while they are listed could make a circle.
            (0..64).any(|_| {
                pid = parent(pid);
                pid == self.pid
            })
        };
        let mut stopped = all.iter().filter(|(_, stat)| stat.is_stopped());
        stopped.any(|(pid, _)| is_below(*pid))
    }

    /// Whether tools that it started to work in `folder` still run, although it does not. None where that cannot be seen.
    pub fn has_survivors(&self, folder: &Path) -> Option<bool> {
        if namespace() != Some(self.namespace) {
            return None;
        }
        let mut mark = b"TMPDIR=".to_vec();
        mark.extend_from_slice(folder.join("tmp").as_os_str().as_bytes());
        // A process that is about to execute another program has no environment for a moment. It may work in the folder.
        let may_work_there = |pid: u32| {
            for _ in 0..3 {
                let environment = environment(pid);
                if !environment.is_empty() {
                    return environment.split(|byte| *byte == 0).any(|one| one == mark);
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

/// The environment of a process. In one piece: of a program that is replaced meanwhile the rest cannot be read.
fn environment(pid: u32) -> Vec<u8> {
    const MOST: usize = 1 << 20;
    let mut bytes = vec![0; MOST];
    let opened = File::open(format!("/proc/{pid}/environ"));
    let length = opened.and_then(|mut file| file.read(&mut bytes));
    bytes.truncate(length.unwrap_or(0));
    bytes
}

/// The namespace of process numbers that we are in.
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
        assert_eq!(us.standing(), HolderState::Works);
        let later = Holder {
            start: us.start + 1,
            ..us
        };
        later.write(&file);
        assert_eq!(later.standing(), HolderState::Gone);
        let far = Holder { namespace: 1, ..us };
        assert_eq!(far.standing(), HolderState::Unknown);
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
