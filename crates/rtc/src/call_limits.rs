//! The limits of a call: a deadline, and a cancellation by another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::Error;

/// A cancellation, which any thread may trigger.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    made: Arc<AtomicBool>,
    ask: Option<fn() -> bool>,
}

impl Cancel {
    /// A cancellation that is not triggered.
    pub fn new() -> Self {
        Self::default()
    }

    /// A cancellation that is triggered when `ask` returns true. The calling thread calls `ask` every few milliseconds while
    /// it waits for the compiler, another thread or another process. This is for conditions that only that thread can check,
    /// such as Python's signals.
    pub fn asking(ask: fn() -> bool) -> Self {
        Self {
            ask: Some(ask),
            ..Self::default()
        }
    }

    /// Cancels all calls that use this.
    pub fn cancel(&self) {
        self.made.store(true, Ordering::Relaxed);
    }

    /// Whether it was triggered.
    pub fn is_cancelled(&self) -> bool {
        self.made.load(Ordering::Relaxed)
    }

    /// Calls `ask`, on the thread that made the call.
    fn ask(&self) {
        if !self.is_cancelled() && self.ask.is_some_and(|ask| ask()) {
            self.cancel();
        }
    }
}

/// The limits of a compilation. NVRTC notices them late, and before 12.8 not at all: the caller gets its answer after 200
/// ms, and NVRTC's thread goes on in the background.
#[derive(Debug, Clone, Default)]
pub struct CallLimits {
    /// The time at which to give up.
    pub deadline: Option<Instant>,
    /// A cancellation, which another thread may trigger.
    pub cancel: Option<Cancel>,
}

impl CallLimits {
    /// Fails if `what` has exceeded its limits. For the thread that made the call.
    pub(crate) fn check(&self, what: &str) -> Result<(), Error> {
        if let Some(cancel) = &self.cancel {
            cancel.ask();
        }
        self.passed(what)
    }

    /// Like [`CallLimits::check`], but for any thread: it calls no function of the caller.
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
