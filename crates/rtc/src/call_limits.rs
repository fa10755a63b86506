//! When a call is to give up: at a time, or when another thread says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::Error;

/// A request to give up, which any thread may make.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    made: Arc<AtomicBool>,
    ask: Option<fn() -> bool>,
}

impl Cancel {
    /// A request to give up that is not made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that is made when `ask` says so. It is asked on the thread that called, every few milliseconds while that waits
    /// for the compiler or for another thread or process: where only that thread can know, as with Python's signals.
    pub fn asking(ask: fn() -> bool) -> Self {
        Self {
            ask: Some(ask),
            ..Self::default()
        }
    }

    /// Asks whatever was given this to give up.
    pub fn cancel(&self) {
        self.made.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked.
    pub fn is_cancelled(&self) -> bool {
        self.made.load(Ordering::Relaxed)
    }

    /// Asks, on the thread that called.
    fn ask(&self) {
        if !self.is_cancelled() && self.ask.is_some_and(|ask| ask()) {
            self.cancel();
        }
    }
}

/// How long a compilation may go on. NVRTC notices late, and before 12.8 not at all: the caller has its answer after 200 ms, and
/// NVRTC's thread goes on until then, and takes its time and memory.
#[derive(Debug, Clone, Default)]
pub struct CallLimits {
    /// When to give up.
    pub deadline: Option<Instant>,
    /// A request to give up, which another thread may make.
    pub cancel: Option<Cancel>,
}

impl CallLimits {
    /// Fails if it is time to give up on `what`. For the thread that called.
    pub(crate) fn check(&self, what: &str) -> Result<(), Error> {
        if let Some(cancel) = &self.cancel {
            cancel.ask();
        }
        self.passed(what)
    }

    /// As [`CallLimits::check`], for any thread: calls no function of the caller.
    pub(crate) fn passed(&self, what: &str) -> Result<(), Error> {
        let what = || what.to_owned();
        if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return Err(Error::Cancelled { what: what() });
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::Deadline { what: what() }),
            _ => Ok(()),
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.deadline.is_some() || self.cancel.is_some()
    }
}
