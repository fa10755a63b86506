//! SIGINT, SIGTERM and SIGHUP: ends the children, removes what is unfinished, and dies of the
//! signal, so that the caller sees the status it expects.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warpcc_engine::Children;

/// Watches for signals until the process ends.
///
/// `unfinished` are files that a tool writes in place; they go, because half of an executable is
/// worse than none. `remove` takes the private folder away.
pub fn watch(
    children: Arc<Children>,
    unfinished: Arc<Mutex<Vec<PathBuf>>>,
    remove: impl Fn() + Send + 'static,
) {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        return; // Then a signal ends us at once, as it does any program.
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            children.close();
            remove();
            for file in unfinished
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
            {
                _ = std::fs::remove_file(file);
            }
            _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
}
