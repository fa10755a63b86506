//! The shared caches behind the disk store, as everyone sees them who links no network: asked through `warpcc-remote` on a
//! miss, told of what is new by a note on disk, never a reason to fail.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warpcc_cache::{DiskStore, Key, Level, Upstream, Wanted};

use crate::RemoteProgram;
use crate::backoff::{Health, Way};
use crate::remote_program::Gone;
use crate::settings::{Access, Layer};
use crate::upload_queue::Spool;

/// The shared caches, near to far.
pub struct SharedCaches {
    program: Arc<RemoteProgram>,
    layers: Vec<Layer>,
    health: Health,
    spool: Spool,
    noted: AtomicBool,
}

impl SharedCaches {
    /// `layers` behind the disk store in `root`: those of the opening of `program`.
    pub fn new(program: Arc<RemoteProgram>, layers: Vec<Layer>, root: &Path) -> Self {
        Self {
            program,
            layers,
            health: Health::of(root),
            spool: Spool::of(root),
            noted: AtomicBool::new(false),
        }
    }

    /// Whether an uploader should be started: something waits that nobody is uploading, and the server may be asked.
    pub fn needs_uploader(&self) -> bool {
        self.noted.load(Ordering::Relaxed)
            && self.layers.iter().any(|layer| {
                layer.access == Access::ReadWrite
                    && self.health.resting(layer, Way::Writing).is_none()
                    && self.health.resting(layer, Way::Reading).is_none()
                    && self.spool.has_any(layer)
                    && self.spool.lock(layer).is_some()
            })
    }

    /// Whether something waits to be uploaded.
    pub fn waits(&self) -> bool {
        let waits = |layer: &Layer| !self.spool.waiting(layer).is_empty();
        self.layers
            .iter()
            .any(|layer| layer.access == Access::ReadWrite && waits(layer))
    }

    /// Without the program nothing can be asked: its servers are left alone, so that a build is told once.
    fn lost(&self, gone: &Gone) {
        let why = gone.to_string();
        let mut first = false;
        for layer in &self.layers {
            first |= self.health.rest(layer, Way::Reading, &why, true);
        }
        if first {
            self.program.tell(&format!(
                "nothing comes from shared caches for a while: {why}"
            ));
        }
    }
}

impl Upstream for SharedCaches {
    fn fetch(&self, store: &DiskStore, wanted: &[Wanted<'_>]) -> bool {
        let asks = |layer: &Layer| self.health.resting(layer, Way::Reading).is_none();
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
                self.lost(&gone);
                false
            }
        }
    }

    fn offer(&self, store: &DiskStore, level: Level, key: &Key) {
        if !store.options().readonly && self.spool.offer(&self.layers, level, key) {
            self.noted.store(true, Ordering::Relaxed);
        }
    }

    fn take_warnings(&self) -> Vec<String> {
        self.program.take_warnings()
    }
}
