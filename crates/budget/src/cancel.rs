//! A way to stop waiting, from another thread, at once.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends all waits that got this handle. Clones are the same handle. A cancelled handle stays cancelled.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug)]
struct CancelState {
    done: AtomicBool,
    /// One byte is written and never read, so that every waiter sees it. If there was no free descriptor there is only
    /// the flag, and waiters read it at intervals.
    pair: Option<(UnixStream, UnixStream)>,
}

impl Default for CancelState {
    fn default() -> Self {
        Self {
            done: AtomicBool::new(false),
            pair: UnixStream::pair().ok(),
        }
    }
}

/// The wait was ended by [`Cancel::cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Cancel {
    /// A handle that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all waits with this handle, present and future.
    pub fn cancel(&self) {
        if !self.0.done.swap(true, Ordering::SeqCst)
            && let Some((_, sender)) = &self.0.pair
        {
            // There is room for one byte, because nothing else was ever written.
            let _ = (&*sender).write(&[1]);
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.done.load(Ordering::SeqCst)
    }

    /// An error if it was cancelled.
    ///
    /// # Errors
    /// It was.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    /// Readable once cancelled.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.pair.as_ref().map(|(receiver, _)| receiver.as_fd())
    }
}
