//! Kills a tool's process group if this process ends before the tool, by SIGKILL, which cannot be handled.
//!
//! A pipe whose writing end only we have, and whose reading end the tool holds without knowing of it. The reading end
//! is told to signal the tool's process group when something happens to it, and the only thing that ever does is that
//! our end closes. The kernel does that for us, however we end. See docs/design/lifeline.md for what else was possible.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

/// Between this process and one tool. Dropped when the tool has ended: whatever it left running stays.
#[derive(Debug)]
pub struct Lifeline {
    tools: OwnedFd,
    /// Closed by exec, so no other process ever has it.
    _ours: OwnedFd,
}

impl Lifeline {
    /// `None` where no pipe can be opened: the tool then outlives us.
    pub fn new() -> Option<Self> {
        let (tools, ours) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        Some(Self { tools, _ours: ours })
    }

    /// Lets the processes that are started from now on inherit the tool's end, or no longer.
    pub fn lend(&self, lend: Lend) {
        let flags = match lend {
            Lend::ToChildren => FdFlags::empty(),
            Lend::ToNobody => FdFlags::CLOEXEC,
        };
        // Where it fails, no process holds the end, and the tool outlives us.
        let _ = fcntl_setfd(&self.tools, flags);
    }

    /// From now on `group` ends with us.
    pub fn tie(&self, group: Pid) {
        let end = self.tools.as_raw_fd();
        let group = -group.as_raw_pid();
        // SAFETY: both commands take a number, and keep no pointer; the descriptor is ours and open.
        #[expect(unsafe_code, reason = "rustix and nix have neither command")]
        let told = unsafe {
            libc::fcntl(end, libc::F_SETOWN, group) == 0
                && libc::fcntl(end, F_SETSIG, libc::SIGKILL) == 0
        };
        if told {
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

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.signal(Signals::Kept);
    }
}

/// The processes that inherit the tool's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lend {
    /// The process that is started.
    ToChildren,
    /// No process.
    ToNobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signals {
    Sent,
    Kept,
}

/// The same for every architecture that we are built for; libc has it for some C libraries only.
const F_SETSIG: libc::c_int = 10;
/// The flag is a property of the open pipe, so what the tool inherited has it too.
const O_ASYNC: u32 = libc::O_ASYNC as u32;
