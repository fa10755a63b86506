//! The layers as the rest of warpcc sees them: asked on a miss, told of what is new, never a reason to fail.
//!
//! Nothing is made before it is needed: a call that hits on disk has no runtime, no TLS and no client.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use warpcc_cache::{DiskStore, Key, Level, Upstream, Wanted};

use crate::backend_kind::AnyBackend;
use crate::backoff::{Health, Way};
use crate::error::Fault;
use crate::patience::Patience;
use crate::settings::Layer;
use crate::transfer::{self, Fetched, Turns};
use crate::upload_queue::Spool;

/// The shared caches, near to far.
pub struct Shared<'a> {
    servers: Vec<Server>,
    health: Health,
    spool: Spool,
    /// Who tells the user, in one line.
    warn: Box<dyn Fn(&str) + Send + Sync + 'a>,
    runtime: OnceLock<Option<Runtime>>,
    noted: AtomicBool,
    patience: Patience,
}

struct Server {
    layer: Layer,
    backend: OnceLock<Option<Arc<AnyBackend>>>,
    /// It failed during this call.
    off: AtomicBool,
    /// It did its part during this call, and whatever was noted against it is gone.
    well: AtomicBool,
}

impl<'a> Shared<'a> {
    /// `layers` behind the disk store in `root`. `warn` tells the user.
    pub fn new(layers: &[Layer], root: &Path, warn: impl Fn(&str) + Send + Sync + 'a) -> Self {
        let server = |layer: &Layer| Server {
            layer: layer.clone(),
            backend: OnceLock::new(),
            off: AtomicBool::new(false),
            well: AtomicBool::new(false),
        };
        Self {
            servers: layers.iter().map(server).collect(),
            health: Health::of(root),
            spool: Spool::of(root),
            warn: Box::new(warn),
            runtime: OnceLock::new(),
            noted: AtomicBool::new(false),
            patience: Patience::of_a_call(),
        }
    }

    /// The same for a process that asks again and again, as long as it lives.
    pub fn for_many_calls(mut self) -> Self {
        self.patience = Patience::of_each_question();
        self
    }

    /// Whether something was noted to be uploaded, also where it came from a server behind others.
    pub fn has_noted(&self) -> bool {
        self.noted.load(Ordering::Relaxed)
    }

    /// Tells what an uploader, which has no terminal, has found out.
    fn tell_untold(&self) {
        for server in &self.servers {
            if let Some(why) = self.health.untold(&server.layer) {
                (self.warn)(&format!("nothing is uploaded for a while: {why}"));
            }
        }
    }

    fn runtime(&self) -> Option<&Runtime> {
        self.runtime
            .get_or_init(|| {
                // One thread that waits for the network; the work is done on those of the callers.
                let built = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .thread_name("warpcc-remote")
                    .enable_all()
                    .build();
                if let Err(error) = &built {
                    (self.warn)(&format!("no shared cache: {error}"));
                } else {
                    self.tell_untold();
                }
                built.ok()
            })
            .as_ref()
    }

    fn backend(&self, server: &Server, store: &DiskStore) -> Option<Arc<AnyBackend>> {
        let made = server.backend.get_or_init(|| {
            AnyBackend::new(&server.layer).map(Arc::new).map_or_else(
                |fault| {
                    self.failed(server, store, &fault);
                    None
                },
                Some,
            )
        });
        made.clone()
    }

    fn failed(&self, server: &Server, store: &DiskStore, fault: &Fault) {
        store.count(&[("remote.errors", 1)]);
        if let Fault::WrongBytes { .. } = fault {
            store.count(&[("remote.wrong_bytes", 1)]);
        }
        server.off.store(true, Ordering::Relaxed);
        if self
            .health
            .rest(&server.layer, Way::Reading, &fault.to_string(), true)
        {
            (self.warn)(&format!(
                "the shared cache is left alone for a while: {fault} (`warpcc remote ping` asks it now)"
            ));
        }
    }

    /// Asks one server for one key. None where it is not to be asked, or fails.
    async fn ask(
        &self,
        server: &Server,
        store: &DiskStore,
        wanted: Wanted<'_>,
        turn: &Mutex<()>,
    ) -> Option<Fetched> {
        if server.off.load(Ordering::Relaxed)
            || self.health.resting(&server.layer, Way::Reading).is_some()
        {
            return None;
        }
        let backend = self.backend(server, store)?;
        let shown = server.layer.shown();
        let turns = Turns {
            one_at_a_time: turn,
            failed: &server.off,
        };
        let fetching = transfer::fetch(&*backend, &shown, store, wanted, turns);
        match self.patience.within(&shown, fetching).await {
            Ok(fetched) => {
                // Not where another question of this call has just failed.
                let failed = server.off.load(Ordering::Relaxed);
                if !failed && !server.well.swap(true, Ordering::Relaxed) {
                    self.health.well(&server.layer, Way::Reading);
                }
                let id = server.layer.id();
                let (what, bytes) = match fetched {
                    Fetched::Brought(bytes) => ("hits", bytes),
                    Fetched::Nothing(bytes) => ("misses", bytes),
                    Fetched::Refused(bytes) => {
                        store.count(&[("remote.refused", 1)]);
                        ("misses", bytes)
                    }
                };
                store.count(&[
                    (&format!("remote.{what}"), 1),
                    ("remote.bytes_down", bytes),
                    (&format!("remote_server.{id}.{what}"), 1),
                    (&format!("remote_server.{id}.bytes_down"), bytes),
                ]);
                Some(fetched)
            }
            // Our own disk is no reason to leave a server alone.
            Err(fault @ Fault::Local { .. }) => {
                store.count(&[("remote.errors", 1)]);
                if !server.off.swap(true, Ordering::Relaxed) {
                    (self.warn)(&format!("nothing comes from the shared cache: {fault}"));
                }
                None
            }
            Err(fault) => {
                self.failed(server, store, &fault);
                None
            }
        }
    }

    /// Near to far, until one has it.
    async fn ask_all(&self, store: &DiskStore, wanted: Wanted<'_>, turn: &Mutex<()>) -> bool {
        for (place, server) in self.servers.iter().enumerate() {
            if let Some(Fetched::Brought(_)) = self.ask(server, store, wanted, turn).await {
                // The nearer ones are to have it too.
                self.note(&self.servers[..place], wanted.level, wanted.key);
                return true;
            }
        }
        false
    }

    fn note(&self, servers: &[Server], level: Level, key: &Key) {
        let layers = servers.iter().map(|server| &server.layer);
        if self.spool.offer(layers, level, key) {
            self.noted.store(true, Ordering::Relaxed);
        }
    }
}

impl Upstream for Shared<'_> {
    fn fetch(&self, store: &DiskStore, wanted: &[Wanted<'_>]) -> bool {
        let asks = |server: &Server| {
            !server.off.load(Ordering::Relaxed)
                && self.health.resting(&server.layer, Way::Reading).is_none()
        };
        // The store is where fetched results go. Without a server to ask there is no runtime either.
        if store.options().readonly || !self.servers.iter().any(asks) {
            return false;
        }
        let Some(runtime) = self.runtime() else {
            return false;
        };
        let asking = || {
            runtime.block_on(async {
                let turn = Mutex::new(());
                let all = wanted.iter().map(|one| self.ask_all(store, *one, &turn));
                let found = futures_util::future::join_all(all).await;
                found.contains(&true)
            })
        };
        // Hundreds of crates lie below this. A mistake in one of them must not end a build.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(asking)).unwrap_or_else(|_| {
            for server in &self.servers {
                server.off.store(true, Ordering::Relaxed);
            }
            false
        })
    }

    fn offer(&self, store: &DiskStore, level: Level, key: &Key) {
        if !store.options().readonly {
            self.note(&self.servers, level, key);
        }
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.runtime.take() {
            // Nothing of it is waited for.
            runtime.shutdown_background();
        }
    }
}
