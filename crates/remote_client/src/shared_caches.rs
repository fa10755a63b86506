//! The shared caches behind the disk store, for programs that link no network code. They are asked through
//! `warpcc-remote` after a miss. New results go into the upload queue. No error fails a build.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warpcc_cache::{DiskStore, FetchRequest, Key, Level, Upstream};

use crate::RemoteProgram;
use crate::circuit_breaker::{CircuitBreakers, Direction};
use crate::remote_program::ProgramError;
use crate::settings::{Access, Layer};
use crate::upload_queue::UploadQueue;

/// The shared caches, near to far.
pub struct SharedCaches {
    program: Arc<RemoteProgram>,
    layers: Vec<Layer>,
    breakers: CircuitBreakers,
    queue: UploadQueue,
    noted: AtomicBool,
}

impl SharedCaches {
    /// `layers` behind the disk store in `root`: those of the opening of `program`.
    pub fn new(program: Arc<RemoteProgram>, layers: Vec<Layer>, root: &Path) -> Self {
        Self {
            program,
            layers,
            breakers: CircuitBreakers::in_cache(root),
            queue: UploadQueue::in_cache(root),
            noted: AtomicBool::new(false),
        }
    }

    /// Whether an uploader should be started: something waits that nobody is uploading, and the server may be asked.
    pub fn needs_uploader(&self) -> bool {
        self.noted.load(Ordering::Relaxed)
            && self.layers.iter().any(|layer| {
                layer.access == Access::ReadWrite
                    && !layer.uploads_at_end()
                    && self.breakers.pause(layer, Direction::Writing).is_none()
                    && self.breakers.pause(layer, Direction::Reading).is_none()
                    && self.queue.has_entries(layer)
                    && self.queue.lock(layer).is_some()
            })
    }

    /// Whether something waits to be uploaded beside a program's own work.
    pub fn waits(&self) -> bool {
        let waits = |layer: &Layer| !self.queue.entries(layer).is_empty();
        let uploads = |layer: &Layer| layer.access == Access::ReadWrite && !layer.uploads_at_end();
        self.layers
            .iter()
            .any(|layer| uploads(layer) && waits(layer))
    }

    /// Without the program no server can be asked. All are paused, so that a build warns only once.
    fn pause_all(&self, gone: &ProgramError) {
        let why = gone.to_string();
        let mut first = false;
        for layer in &self.layers {
            first |= self.breakers.trip(layer, Direction::Reading, &why, true);
        }
        if first {
            self.program
                .warn(&format!("shared caches are not used for a while: {why}"));
        }
    }
}

impl Upstream for SharedCaches {
    fn fetch(&self, store: &DiskStore, wanted: &[FetchRequest<'_>]) -> bool {
        let asks = |layer: &Layer| self.breakers.pause(layer, Direction::Reading).is_none();
        // The store is where fetched results go. Without a server to ask no program is started.
        if store.options().readonly || !self.layers.iter().any(asks) {
            return false;
        }
        match self.program.fetch(wanted) {
            Ok((brought, noted)) => {
                self.noted.fetch_or(noted, Ordering::Relaxed);
                brought
            }
            Err(gone) => {
                store.count(&[("remote.errors", 1)]);
                self.pause_all(&gone);
                false
            }
        }
    }

    fn offer(&self, store: &DiskStore, level: Level, key: &Key) {
        if !store.options().readonly && self.queue.enqueue(&self.layers, level, key) {
            self.noted.store(true, Ordering::Relaxed);
        }
    }

    fn take_warnings(&self) -> Vec<String> {
        self.program.take_warnings()
    }
}
