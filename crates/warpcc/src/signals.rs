//! SIGINT, SIGTERM and SIGHUP: ends the children, gives back the build tool's tokens, removes what is unfinished, and dies of
//! the signal, so that the caller sees the status it expects.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warpcc_budget::Tokens;
use warpcc_engine::Children;

use crate::scratch::Held;

/// What a signal ends and removes.
#[derive(Debug, Default)]
pub struct Interrupt {
    /// The tools that run.
    pub children: Children,
    /// Files that a tool writes in place; they go, because half of an executable is worse than
    /// none.
    pub unfinished: Mutex<Vec<PathBuf>>,
    /// The private folder.
    pub scratch: Arc<Held>,
    /// Tokens of the build tool, which would be lost to it for the rest of its build.
    pub tokens: Mutex<Option<Tokens>>,
}

impl Interrupt {
    /// Watches for signals until the process ends. To be called before anything is made that a
    /// signal must remove.
    pub fn watch() -> Arc<Self> {
        let interrupt = Arc::new(Self::default());
        let (registered, ready) = mpsc::channel();
        let wait = {
            let interrupt = Arc::clone(&interrupt);
            move || {
                // Here and not before: without the thread a signal must end us at once, as it does any program.
                let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
                    return;
                };
                drop(registered);
                if let Some(signal) = signals.forever().next() {
                    interrupt.end(signal);
                }
            }
        };
        if thread::Builder::new().spawn(wait).is_ok() {
            // Nothing is sent: it ends when the signals are ours, or cannot be.
            let _: Result<(), _> = ready.recv();
        }
        interrupt
    }

    fn end(&self, signal: i32) {
        self.children.close();
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
            _ = std::fs::remove_file(file);
        }
        _ = signal_hook::low_level::emulate_default_handler(signal);
        std::process::exit(128 + signal);
    }
}
