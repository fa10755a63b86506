//! The messages of a build's tools, held back until it is certain that nvcc need not run.
//!
//! Plain nvcc would print them again. A tool that ends by a signal, files next to an output, an output that cannot be
//! written: all this shows late. An interrupted user sees the messages that nvcc's tools would have printed by then.

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
    /// Starts over with nvcc's own messages.
    pub fn begin(&self, first: &Streams) {
        self.lock().clone_from(first);
    }

    /// Adds the messages of a command that has ended.
    pub fn add(&self, finished: &Finished) {
        let mut said = self.lock();
        said.stdout.extend_from_slice(&finished.stdout);
        said.stderr.extend_from_slice(&finished.stderr);
    }

    /// All messages so far.
    pub fn so_far(&self) -> Streams {
        self.lock().clone()
    }

    /// Shows the messages once. A signal waits until they are written.
    pub fn show(&self) {
        let mut said = self.lock();
        let Streams { stdout, stderr } = mem::take(&mut *said);
        direct::emit(&stdout, &stderr);
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
