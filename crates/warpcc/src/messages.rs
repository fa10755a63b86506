//! The messages of a build's tools, held back until it is certain that nvcc need not run.
//!
//! nvcc would say it again. A tool that ends by a signal, files next to an output, an output that cannot be written:
//! all this shows late. Who is interrupted hears what nvcc's tools would have said by then.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpcc_engine::Finished;

use crate::direct;

/// What goes to standard output and to standard error.
#[derive(Debug, Default, Clone)]
pub struct Streams {
    /// To standard output.
    pub stdout: Vec<u8>,
    /// To standard error.
    pub stderr: Vec<u8>,
}

/// What was said so far, and not shown.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Streams>);

impl Messages {
    /// Begins anew, with what nvcc said itself.
    pub fn begin(&self, first: &Streams) {
        self.lock().clone_from(first);
    }

    /// A command has ended.
    pub fn add(&self, finished: &Finished) {
        let mut said = self.lock();
        said.stdout.extend_from_slice(&finished.stdout);
        said.stderr.extend_from_slice(&finished.stderr);
    }

    /// All of it.
    pub fn so_far(&self) -> Streams {
        self.lock().clone()
    }

    /// Shows it, once. A signal waits until it is out.
    pub fn show(&self) {
        let mut said = self.lock();
        let Streams { stdout, stderr } = mem::take(&mut *said);
        direct::emit(&stdout, &stderr);
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
