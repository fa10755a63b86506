//! A cgroup of a test's own, of either version, removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::space::Program;

/// A cgroup, on a machine that lets us make one.
pub struct Cgroup {
    folder: PathBuf,
    /// Whether it is of version 1, which has a tree for each controller, and other file names.
    first: bool,
}

impl Cgroup {
    /// Makes a cgroup below the root of this controller's tree.
    pub fn new(controller: &str) -> Result<Self, String> {
        let version1 = Path::new("/sys/fs/cgroup").join(controller);
        let first = version1.is_dir();
        let base = if first {
            version1
        } else {
            PathBuf::from("/sys/fs/cgroup")
        };
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("warpcc-{controller}-{}-{number}", std::process::id());
        let folder = base.join(name);
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { folder, first })
    }

    /// Writes a limit.
    pub fn set(&self, name: &str, value: u64) -> Result<(), String> {
        let file = self.folder.join(name);
        fs::write(&file, value.to_string()).map_err(|e| format!("{}: {e}", file.display()))
    }

    /// Limits the memory, and allows no swap, which would be slow.
    pub fn limit_memory(&self, bytes: u64) -> Result<(), String> {
        let (limit, swap) = if self.first {
            ("memory.limit_in_bytes", "memory.swappiness")
        } else {
            ("memory.max", "memory.swap.max")
        };
        self.set(limit, bytes)?;
        // The file is absent on a machine without swap.
        let _ = self.set(swap, 0);
        Ok(())
    }

    /// The number of processes in it that the kernel has killed for lack of memory.
    pub fn killed(&self) -> u64 {
        let name = if self.first {
            "memory.oom_control"
        } else {
            "memory.events"
        };
        let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|c| c.trim().parse().ok()).unwrap_or(0)
    }

    /// A program that runs `command` inside the cgroup.
    pub fn inside(&self, command: &[PathBuf]) -> Program {
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let mut words = vec!["-c".to_owned(), enter.to_owned()];
        let paths = [&self.folder].into_iter().chain(command);
        words.extend(paths.map(|p| p.display().to_string()));
        Program::Other("/bin/sh".into(), words)
    }

    /// Waits until the cgroup has no processes, for a minute at most.
    pub fn wait_until_empty(&self) {
        for _ in 0..6_000 {
            let left = fs::read_to_string(self.folder.join("cgroup.procs"));
            if left.is_ok_and(|left| left.is_empty()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
