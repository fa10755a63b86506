//! Kills a tool's process group with SIGKILL, which cannot be handled, if this process ends before the tool.
//!
//! It uses a pipe. Only this process has the writing end. The tool inherits the reading end, and does not use it. The
//! reading end is set to signal the tool's process group when its state changes, and the only possible change is that
//! our end closes. The kernel closes it however this process ends. docs/design/lifeline.md describes the alternatives.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

/// The pipe between this process and one tool. It is dropped when the tool has ended: processes that the tool left running
/// stay.
#[derive(Debug)]
pub struct DeathPipe {
    tools: OwnedFd,
    /// It is closed on exec, so no other process ever has it.
    _ours: OwnedFd,
}

impl DeathPipe {
    /// Opens the pipe; `None` if that fails: the tool then outlives this process.
    pub fn new() -> Option<Self> {
        let (tools, ours) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        Some(Self { tools, _ours: ours })
    }

    /// Decides whether processes that are started from now on inherit the tool's end.
    pub fn lend(&self, lend: Lend) {
        let flags = match lend {
            Lend::ToChildren => FdFlags::empty(),
            Lend::ToNobody => FdFlags::CLOEXEC,
        };
        // If this fails, no process holds the end, and the tool outlives this process.
        let _ = fcntl_setfd(&self.tools, flags);
    }

    /// Makes `group` end with this process from now on.
    pub fn tie(&self, group: Pid) {
        let end = self.tools.as_raw_fd();
        let group = -group.as_raw_pid();
        // SAFETY: both commands take a number, and keep no pointer; this process owns the descriptor, and it is open.
        #[expect(unsafe_code, reason = "rustix and nix have neither command")]
        let is_set = unsafe {
            libc::fcntl(end, libc::F_SETOWN, group) == 0
                && libc::fcntl(end, F_SETSIG, libc::SIGKILL) == 0
        };
        if is_set {
            self.signal(Signals::Sent);
        }
    }

    fn signal(&self, signals: Signals) {
        let Ok(mut flags) = fcntl_getfl(&self.tools) else {
            return;
        };
        flags.set(OFlags::from_bits_retain(O_ASYNC), signals == Signals::Sent);
        let _ = fcntl_setfl(&self.tools, flags);
    }
}

impl Drop for DeathPipe {
    fn drop(&mut self) {
        self.signal(Signals::Kept);
    }
}

/// Which processes inherit the tool's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lend {
    /// The processes that are started.
    ToChildren,
    /// No process.
    ToNobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signals {
    Sent,
    Kept,
}

/// The value is the same for every architecture that warpcc is built for; libc has it for some C libraries only.
const F_SETSIG: libc::c_int = 10;
/// The flag belongs to the open pipe, so the tool's inherited descriptor has it too.
const O_ASYNC: u32 = libc::O_ASYNC as u32;
