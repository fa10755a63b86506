//! Handles signals. SIGCONT continues the children. SIGINT, SIGTERM and SIGHUP end the children, give back the build tool's
//! tokens, remove unfinished files, show the tools' messages, and end this process by the same signal, so that the caller
//! sees the status it expects.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::signal::SIGXFSZ;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warpcc_budget::Tokens;
use warpcc_engine::Children;

use crate::messages::Messages;
use crate::scratch::Held;

/// How long to wait for other machines to learn that a step is not wanted any more, and for the messages to be read.
const FAREWELL: Duration = Duration::from_secs(1);

/// Everything that a signal ends or removes.
#[derive(Debug, Default)]
pub struct Interrupt {
    /// The tools that run.
    pub children: Children,
    /// Files that a tool writes in place. They are removed, because half of an executable is worse than none.
    pub unfinished: Mutex<Vec<PathBuf>>,
    /// The private folder.
    pub scratch: Arc<Held>,
    /// Tokens of the build tool, which would be lost to it for the rest of its build.
    pub tokens: Mutex<Option<Tokens>>,
    /// The tools' messages so far.
    pub messages: Arc<Messages>,
}

impl Interrupt {
    /// Watches for signals until the process ends. To be called before anything is made that a
    /// signal must remove. Tools that stand still for `stall` are ended.
    pub fn watch(stall: Option<Duration>) -> Arc<Self> {
        let interrupt = Arc::new(Self::default());
        interrupt.children.limit_standstill(stall);
        let (registered, ready) = mpsc::channel();
        let wait = {
            let interrupt = Arc::clone(&interrupt);
            move || {
                // Here and not before: without the thread a signal must end us at once, as it does any program.
                // Signals that our parent ignores (`nohup`, `&` in a script) stay ignored, as they would with nvcc.
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
            // Nothing is sent: the channel closes when the signals are ours, or cannot be.
            let _: Result<(), _> = ready.recv();
        }
        interrupt
    }

    fn end(&self, signal: i32) {
        self.children.close();
        self.children.settle(FAREWELL);
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

    /// Shows the messages. A reader that does not read delays the end of this process by [`FAREWELL`] at most.
    fn show_messages(&self) {
        let said = Arc::clone(&self.messages);
        let (shown, is_shown) = mpsc::channel::<()>();
        let show = move || {
            said.show();
            drop(shown);
        };
        if thread::Builder::new().spawn(show).is_ok() {
            // Nothing is sent: the channel closes once everything is written.
            let _: Result<(), _> = is_shown.recv_timeout(FAREWELL);
        }
    }
}

/// Continues children that we started and did not stop. Ctrl-Z reaches a child that has begun but is no tool yet, because
/// it is in our group. When it stops, it is in a group of its own, and the signal that continues us does not reach it. We
/// would wait for it for ever.
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

/// Makes a write beyond `ulimit -f` an error, which we can answer, instead of the end of this process. Programs that we
/// start or become get the signal as they would without us: a handler ends at exec.
pub fn survive_file_size_limit() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if limit.current.is_none() {
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignored(&status) & (1 << (SIGXFSZ - 1)) == 0 {
        // Without the handler a large write ends us, as it ends nvcc's tools.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// The signals that are ignored: bit 0 is signal 1. proc_pid_status(5).
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
