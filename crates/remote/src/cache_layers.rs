//! The layers of shared caches as one [`Upstream`]: they are asked after a miss, and get new results. No error fails a
//! build.
//!
//! Everything is created when it is first needed: a call that hits on disk creates no runtime, no TLS and no client.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use warpcc_cache::{DiskStore, FetchRequest, Key, Level, Upstream};

use crate::backend::Backend;
use crate::backend_kind::AnyBackend;
use crate::circuit_breaker::{CircuitBreakers, Direction};
use crate::error::RemoteError;
use crate::remote_record::Peer;
use crate::settings::Layer;
use crate::signature::Trust;
use crate::time_budget::TimeBudget;
use crate::transfer::{self, Fetched, Turns};
use crate::upload_queue::UploadQueue;

/// The shared caches, near to far.
pub struct CacheLayers<'a> {
    servers: Vec<Server>,
    breakers: CircuitBreakers,
    queue: UploadQueue,
    /// Prints a warning of one line.
    warn: Box<dyn Fn(&str) + Send + Sync + 'a>,
    runtime: OnceLock<Option<Runtime>>,
    noted: AtomicBool,
    time_budget: TimeBudget,
}

/// The client of a server, and the keys whose records are accepted from it.
struct Client {
    backend: AnyBackend,
    trust: Trust,
}

struct Server {
    layer: Layer,
    client: OnceLock<Option<Arc<Client>>>,
    /// It failed during this call.
    off: AtomicBool,
    /// It has worked during this call, and its circuit breaker is closed.
    well: AtomicBool,
}

impl<'a> CacheLayers<'a> {
    /// `layers` behind the disk store in `root`. `warn` prints a warning.
    pub fn new(layers: &[Layer], root: &Path, warn: impl Fn(&str) + Send + Sync + 'a) -> Self {
        let server = |layer: &Layer| Server {
            layer: layer.clone(),
            client: OnceLock::new(),
            off: AtomicBool::new(false),
            well: AtomicBool::new(false),
        };
        Self {
            servers: layers.iter().map(server).collect(),
            breakers: CircuitBreakers::in_cache(root),
            queue: UploadQueue::in_cache(root),
            warn: Box::new(warn),
            runtime: OnceLock::new(),
            noted: AtomicBool::new(false),
            time_budget: TimeBudget::per_call(),
        }
    }

    /// The same for a process that runs on and asks again and again.
    pub fn for_long_process(mut self) -> Self {
        self.time_budget = TimeBudget::per_question();
        self
    }

    /// Whether there is something to upload. This includes results that came from a farther server.
    pub fn has_noted(&self) -> bool {
        self.noted.load(Ordering::Relaxed)
    }

    /// Prints the warnings of an uploader, which has no terminal.
    fn warn_of_paused_uploads(&self) {
        for server in &self.servers {
            if let Some(why) = self.breakers.unreported(&server.layer) {
                (self.warn)(&format!(
                    "uploads to the shared cache are paused: {why} (`warpcc remote upload` tries now)"
                ));
            }
        }
    }

    fn runtime(&self) -> Option<&Runtime> {
        self.runtime
            .get_or_init(|| {
                // One thread waits for the network. The work is done on the callers' threads.
                let built = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .thread_name("warpcc-remote")
                    .enable_all()
                    .build();
                if let Err(error) = &built {
                    (self.warn)(&format!(
                        "shared caches are not used, because no thread can be started: {error}"
                    ));
                } else {
                    self.warn_of_paused_uploads();
                }
                built.ok()
            })
            .as_ref()
    }

    fn client(&self, server: &Server, store: &DiskStore) -> Option<Arc<Client>> {
        let client = || {
            Ok(Arc::new(Client {
                trust: Trust::new(&server.layer.signatures)?,
                backend: AnyBackend::new(&server.layer, Some(store.root()))?,
            }))
        };
        let made = server.client.get_or_init(|| {
            let made: Result<_, RemoteError> = client();
            made.inspect_err(|fault| self.failed(server, store, fault))
                .ok()
        });
        made.clone()
    }

    fn failed(&self, server: &Server, store: &DiskStore, fault: &RemoteError) {
        store.count(&[("remote.errors", 1)]);
        if let RemoteError::WrongBytes { .. } = fault {
            store.count(&[("remote.wrong_bytes", 1)]);
        }
        server.off.store(true, Ordering::Relaxed);
        if self
            .breakers
            .trip(&server.layer, Direction::Reading, &fault.to_string(), true)
        {
            (self.warn)(&format!(
                "the shared cache is not used for a while: {fault} (`warpcc remote ping` tries it now)"
            ));
        }
    }

    /// Whether a server is not asked: it failed during this call, or it has failed lately.
    fn is_paused(&self, server: &Server) -> bool {
        let breakers = &self.breakers;
        server.off.load(Ordering::Relaxed)
            || breakers.pause(&server.layer, Direction::Reading).is_some()
    }

    /// Asks one server for one key. Returns `None` if the server is paused or fails.
    async fn ask(
        &self,
        server: &Server,
        store: &DiskStore,
        wanted: FetchRequest<'_>,
        turn: &Mutex<()>,
    ) -> Option<Fetched> {
        if self.is_paused(server) {
            return None;
        }
        let client = self.client(server, store)?;
        let shown = server.layer.shown();
        let turns = Turns {
            one_at_a_time: turn,
            failed: &server.off,
        };
        let peer = Peer {
            backend: &client.backend,
            name: &shown,
            trust: &client.trust,
            untrusted: server.layer.untrusted,
        };
        let fetching = transfer::fetch(peer, store, wanted, turns);
        let fetched = self.time_budget.within(&shown, fetching).await;
        count_ignored(store, &client.backend);
        match fetched {
            Ok(fetched) => {
                // It is not asked if another request of this call has just failed.
                let failed = server.off.load(Ordering::Relaxed);
                if !failed && !server.well.swap(true, Ordering::Relaxed) {
                    self.breakers.reset(&server.layer, Direction::Reading);
                }
                if let Fetched::Stored(_) = fetched
                    && client.backend.is_aging(wanted.key)
                {
                    self.note(std::slice::from_ref(server), wanted.level, wanted.key);
                }
                count_answer(store, &server.layer, &fetched);
                Some(fetched)
            }
            // An error of our own disk is no reason to pause a server.
            Err(fault @ RemoteError::Local { .. }) => {
                store.count(&[("remote.errors", 1)]);
                if !server.off.swap(true, Ordering::Relaxed) {
                    (self.warn)(&format!(
                        "results of the shared cache cannot be stored: {fault}"
                    ));
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
    async fn ask_layers(
        &self,
        store: &DiskStore,
        wanted: FetchRequest<'_>,
        turn: &Mutex<()>,
    ) -> bool {
        for (place, server) in self.servers.iter().enumerate() {
            if let Some(Fetched::Stored(_)) = self.ask(server, store, wanted, turn).await {
                // The nearer ones are to have it too.
                self.note(&self.servers[..place], wanted.level, wanted.key);
                return true;
            }
        }
        false
    }

    fn note(&self, servers: &[Server], level: Level, key: &Key) {
        let layers = servers.iter().map(|server| &server.layer);
        if self.queue.enqueue(layers, level, key) {
            self.noted.store(true, Ordering::Relaxed);
        }
    }
}

/// Counts what a server answered.
fn count_answer(store: &DiskStore, layer: &Layer, fetched: &Fetched) {
    let id = layer.id();
    let (what, bytes) = match fetched {
        Fetched::Stored(bytes) => ("hits", bytes),
        Fetched::Miss(bytes) => ("misses", bytes),
        Fetched::Refused(bytes) => {
            store.count(&[("remote.refused", 1)]);
            ("misses", bytes)
        }
        Fetched::OtherVersion(bytes) => {
            store.count(&[("remote.other_version", 1)]);
            ("misses", bytes)
        }
        Fetched::Rejected(why, bytes) => {
            let counter = why.counter();
            store.count(&[
                (&format!("remote.{counter}"), 1),
                (&format!("remote_server.{id}.{counter}"), 1),
            ]);
            ("misses", bytes)
        }
    };
    store.count(&[
        (&format!("remote.{what}"), 1),
        ("remote.bytes_down", *bytes),
        (&format!("remote_server.{id}.{what}"), 1),
        (&format!("remote_server.{id}.bytes_down"), *bytes),
    ]);
}

/// Counts what was at a server and was not understood.
pub(crate) fn count_ignored(store: &DiskStore, backend: &impl Backend) {
    let ignored = backend.take_ignored();
    if ignored > 0 {
        store.count(&[("remote.ignored_entries", ignored)]);
    }
}

impl Upstream for CacheLayers<'_> {
    fn fetch(&self, store: &DiskStore, wanted: &[FetchRequest<'_>]) -> bool {
        // Fetched results go into the store. If no server is to be asked, no runtime is started.
        if store.options().readonly || self.servers.iter().all(|server| self.is_paused(server)) {
            return false;
        }
        let Some(runtime) = self.runtime() else {
            return false;
        };
        let asking = || {
            runtime.block_on(async {
                let turn = Mutex::new(());
                let all = wanted.iter().map(|one| self.ask_layers(store, *one, &turn));
                let found = futures_util::future::join_all(all).await;
                found.contains(&true)
            })
        };
        // This uses hundreds of crates. A bug in one of them must not end a build.
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

impl Drop for CacheLayers<'_> {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.runtime.take() {
            // Nothing of it is waited for.
            runtime.shutdown_background();
        }
    }
}
