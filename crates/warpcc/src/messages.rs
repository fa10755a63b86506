//! The messages of a build's tools. They are shown when it is certain that plain nvcc need not run: it would print them
//! again.
//!
//! This is certain only at the end of a build. Until then a tool may end by a signal, a side file may be found, or an output
//! may turn out not to be writable. If the user interrupts the build, the messages so far are shown, as nvcc's tools would
//! have printed them by then.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpcc_engine::Finished;

use crate::direct;

/// Text for standard output and for standard error.
#[derive(Debug, Default, Clone)]
pub struct Streams {
    /// To standard output.
    pub stdout: Vec<u8>,
    /// To standard error.
    pub stderr: Vec<u8>,
}

/// Messages of the tools that are not shown yet.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Streams>);

impl Messages {
    /// Replaces all messages by `first`.
    pub fn restart_with(&self, first: &Streams) {
        self.lock().clone_from(first);
    }

    /// Adds the messages of a command that has ended.
    pub fn add(&self, finished: &Finished) {
        let mut streams = self.lock();
        streams.stdout.extend_from_slice(&finished.stdout);
        streams.stderr.extend_from_slice(&finished.stderr);
    }

    /// All messages so far.
    pub fn so_far(&self) -> Streams {
        self.lock().clone()
    }

    /// Prints the messages, and forgets them. A second thread waits until they are written.
    pub fn show(&self) {
        let mut streams = self.lock();
        let Streams { stdout, stderr } = mem::take(&mut *streams);
        direct::emit(&stdout, &stderr);
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
