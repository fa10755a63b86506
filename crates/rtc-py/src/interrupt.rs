//! Work that Ctrl-C ends: it runs without the interpreter's lock, and still checks for signals.
//!
//! Only Python's main thread gets signals, and only when it asks. So the thread that called asks while it waits.

use std::cell::RefCell;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use warpcc_rtc::{CallLimits, Cancel};

/// How often a thread that waits asks for signals.
const PAUSE: Duration = Duration::from_millis(20);

thread_local! {
    /// The exception that a signal's handler raised while this thread waited: KeyboardInterrupt, as a rule.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs `work`, which is to give up by its limits, with the interpreter's lock released.
///
/// # Errors
/// The exception that a signal's handler raised meanwhile. The result of `work` by then is kept in the cache.
pub fn run<T: Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    work: impl FnOnce(&CallLimits) -> T + Send,
) -> PyResult<T> {
    let limits = CallLimits {
        deadline,
        cancel: Some(Cancel::asking(interrupted)),
    };
    let done = py.detach(|| work(&limits));
    match RAISED.take() {
        Some(raised) => Err(raised),
        None => Ok(done),
    }
}

/// Runs `work`, which cannot be ended, on a thread of its own and waits for it.
///
/// # Errors
/// The exception that a signal's handler raised meanwhile; the work then goes on, and its result is dropped.
pub fn run_on_own_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut answer) = mpsc::channel();
    std::thread::Builder::new()
        .name("warpcc-interruptible".to_owned())
        // Perhaps no thread waits any more.
        .spawn(move || drop(sender.send(work())))?;
    loop {
        let heard;
        (heard, answer) = py.detach(move || (answer.recv_timeout(PAUSE), answer));
        match heard {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                let text = "a bug in warpcc-rtc: its thread ended without an answer";
                return Err(pyo3::exceptions::PyRuntimeError::new_err(text));
            }
        }
    }
}

fn interrupted() -> bool {
    match Python::attach(|py| py.check_signals()) {
        Ok(()) => false,
        Err(raised) => {
            RAISED.set(Some(raised));
            true
        }
    }
}
