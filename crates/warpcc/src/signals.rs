//! Handles signals. SIGCONT continues the children. On SIGINT, SIGTERM and SIGHUP this process ends its children, gives
//! back the build tool's tokens, removes unfinished files and shows the tools' messages. Then it ends itself by the
//! same signal, so that the caller sees the status that it expects.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::signal::{SIGPIPE, SIGXFSZ};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warpcc_budget::Tokens;
use warpcc_engine::Children;

use crate::messages::Messages;
use crate::scratch::ScratchCleanup;

/// How long this process waits after a signal for two things: that the cluster is told to stop its steps, and that the
/// messages are read.
const GRACE: Duration = Duration::from_secs(1);

/// Everything that a signal has to end, remove, give back or show.
#[derive(Debug, Default)]
pub struct Interrupt {
    /// The tools that run.
    pub children: Children,
    /// Outputs that are not complete. They are removed, so that nobody uses half of an output.
    pub unfinished: Mutex<Vec<PathBuf>>,
    /// The scratch folder.
    pub scratch: Arc<ScratchCleanup>,
    /// The tokens of the build tool's jobserver. Without them the build tool would run fewer jobs from then on.
    pub tokens: Mutex<Option<Tokens>>,
    /// The tools' messages so far.
    pub messages: Arc<Messages>,
}

impl Interrupt {
    /// Starts a thread that handles signals until the process ends. To be called before anything is made that a signal must
    /// remove. Tools that hang for the time `stall` are ended.
    pub fn watch(stall: Option<Duration>) -> Arc<Self> {
        let interrupt = Arc::new(Self::default());
        interrupt.children.limit_idle_time(stall);
        let (registered, ready) = mpsc::channel();
        let wait = {
            let interrupt = Arc::clone(&interrupt);
            move || {
                // The thread registers the signals itself: if it cannot be started, signals must end this process as usual.
                // Signals that the parent process ignores (`nohup`, `&` in a script) stay ignored, as they would with nvcc.
                let ignored =
                    ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
                let wanted = [SIGHUP, SIGINT, SIGTERM, SIGCONT];
                let wanted = wanted
                    .into_iter()
                    .filter(|signal| ignored & (1 << (signal - 1)) == 0);
                let Ok(mut signals) = Signals::new(wanted) else {
                    return;
                };
                drop(registered);
                for signal in signals.forever() {
                    match signal {
                        SIGCONT => continue_children(),
                        _ => interrupt.end(signal),
                    }
                }
            }
        };
        if thread::Builder::new().spawn(wait).is_ok() {
            // Waits until the thread has registered the signals, or could not: then it closes the channel.
            let _: Result<(), _> = ready.recv();
        }
        interrupt
    }

    fn end(&self, signal: i32) {
        self.children.close();
        self.children.settle(GRACE);
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = tokens.as_ref() {
            tokens.give_all_back();
        }
        let _nothing_new = self.scratch.remove_for_good();
        for file in self
            .unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            crate::place::remove(file);
        }
        self.show_messages();
        _ = signal_hook::low_level::emulate_default_handler(signal);
        std::process::exit(128 + signal);
    }

    /// Prints the messages. If nobody reads them, this waits for [`GRACE`] at most.
    fn show_messages(&self) {
        let messages = Arc::clone(&self.messages);
        let (shown, is_shown) = mpsc::channel::<()>();
        let show = move || {
            messages.show();
            drop(shown);
        };
        if thread::Builder::new().spawn(show).is_ok() {
            // Waits until the thread has written everything: then it closes the channel.
            let _: Result<(), _> = is_shown.recv_timeout(GRACE);
        }
    }
}

/// Continues all children. Ctrl-Z can stop a child that was just started: it is still in this process's group then, but by
/// the time it stops it has a group of its own. The SIGCONT that the shell sends to this process's group does not reach it, and
/// this process would wait for it for ever.
fn continue_children() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let children = tasks.flatten().filter_map(|task| {
        let children = task.path().join("children");
        std::fs::read_to_string(children).ok()
    });
    for children in children {
        let pids = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        for pid in pids.filter_map(Pid::from_raw) {
            // The child may have ended.
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

/// Makes a write to a pipe that nobody reads an error. The default is that it ends this process.
pub fn survive_closed_pipes() {
    // A program that is started gets the default again, because a handler does not survive `execve`.
    let _ = signal_hook::flag::register(SIGPIPE, Arc::default());
}

/// Makes a write beyond `ulimit -f` fail with an error instead of ending this process. Other programs, which this process
/// starts or becomes, are ended as usual: a handler does not outlast exec.
pub fn survive_file_size_limit() {
    // A limit that a sandbox does not let this process read is taken for none.
    if !rlimit::Resource::FSIZE
        .get_soft()
        .is_ok_and(|most| most != rlimit::INFINITY)
    {
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignored(&status) & (1 << (SIGXFSZ - 1)) == 0 {
        // If the handler cannot be registered, a write beyond the limit ends this process.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// The signals that this process ignores: bit 0 is signal 1 (proc_pid_status(5)).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000000003\n"), 0b11);
        assert_eq!(ignored(""), 0);
    }
}
