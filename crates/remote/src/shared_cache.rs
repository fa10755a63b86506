//! The shared caches of a program that keeps running: like [`CacheLayers`], and new results are uploaded while the
//! program works.
//!
//! It is for libraries in other programs. A call of warpcc ends too soon to upload, and starts a process for that.

use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use warpcc_cache::{DiskStore, FetchRequest, Key, Level, Upstream};

use crate::settings::Access;
use crate::upload::{self, UploadMode, UploadReport};
use crate::{CacheLayers, Layer, config_file};

/// The longest run of one uploader. The next one uploads the rest.
const AT_MOST: Duration = Duration::from_secs(300);
/// Practically for ever, and still a time that can be added to a clock.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Shared caches, near to far, behind one disk store. It is cheap to clone, and any thread may use it.
#[derive(Clone)]
pub struct SharedCache(Arc<Inner>);

struct Inner {
    layers: Vec<Layer>,
    /// The source of uploads.
    store: DiskStore,
    shared: CacheLayers<'static>,
    /// Warnings that were not taken yet.
    warnings: Arc<Mutex<Vec<String>>>,
    /// A child that was forked has none of the threads.
    process: u32,
    uploader: Mutex<Uploader>,
    ended: Condvar,
}

#[derive(Default)]
struct Uploader {
    running: bool,
    /// Something was added to the queue since its last look.
    asked: bool,
}

impl std::fmt::Debug for SharedCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCache")
            .field("layers", &self.0.layers)
            .field("store", &self.0.store)
            .finish_non_exhaustive()
    }
}

impl SharedCache {
    /// `layers`, near to far, behind the store that `open_store` gives; none where no layer is given. Reaches out to nobody yet.
    ///
    /// # Errors
    /// Why there is no store, for people.
    pub fn open(
        layers: Vec<Layer>,
        open_store: impl FnOnce() -> Result<DiskStore, String>,
    ) -> Result<Option<Self>, String> {
        if layers.is_empty() {
            return Ok(None);
        }
        let store = open_store().map_err(|why| format!("the shared cache is not used: {why}"))?;
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&warnings);
        let shared = CacheLayers::new(&layers, store.root(), move |text: &str| {
            lock(&noted).push(text.to_owned());
        })
        .for_long_process();
        Ok(Some(Self(Arc::new(Inner {
            layers,
            store,
            shared,
            warnings,
            process: std::process::id(),
            uploader: Mutex::default(),
            ended: Condvar::new(),
        }))))
    }

    /// Those that `WARPCC_REMOTE` or the settings file names in this environment, as in a build.
    ///
    /// # Errors
    /// The settings make no sense, or as [`SharedCache::open`].
    pub fn configured(
        environment: &dyn Fn(&str) -> Option<OsString>,
        open_store: impl FnOnce() -> Result<DiskStore, String>,
    ) -> Result<Option<Self>, String> {
        Self::open(config_file::layers(environment)?, open_store)
    }

    /// The store that it was opened with.
    pub fn store(&self) -> &DiskStore {
        &self.0.store
    }

    /// Uploads what waits and waits for that, at most so long, and asks servers that are paused too: a CI job's last
    /// step. What is not done then waits in the folder, for any process that uses it; says of each server why.
    pub fn flush(&self, limit: Duration) -> Vec<String> {
        let inner = &self.0;
        let limit = limit.min(FOREVER);
        let reports = upload::drain(&inner.layers, &inner.store, limit, UploadMode::Asked);
        let reports = match reports {
            Ok(reports) => reports,
            Err(error) => return vec![format!("nothing was uploaded: {error}")],
        };
        reports
            .iter()
            .filter_map(UploadReport::unfinished)
            .collect()
    }

    /// Waits for a running upload, at most for this time. Returns true if none is running now.
    pub fn settle(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit.min(FOREVER);
        let mut uploader = lock(&self.0.uploader);
        while uploader.running && std::process::id() == self.0.process {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.0.ended.wait_timeout(uploader, left);
            uploader = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        true
    }

    /// Whether something waits to be uploaded.
    pub fn waits(&self) -> bool {
        let root = self.0.store.root();
        let waits = |layer: &Layer| upload::waiting(layer, root) > 0;
        self.0
            .layers
            .iter()
            .any(|layer| layer.access == Access::ReadWrite && waits(layer))
    }

    fn upload_in_background(inner: &Arc<Inner>) {
        let mut uploader = lock(&inner.uploader);
        uploader.asked = true;
        if uploader.running {
            return;
        }
        uploader.running = true;
        drop(uploader);
        let shared = Arc::clone(inner);
        let started = std::thread::Builder::new()
            .name("warpcc-upload".to_owned())
            .spawn(move || {
                let work = std::panic::AssertUnwindSafe(|| shared.upload());
                // This uses hundreds of crates. A bug in one of them must not leave other threads waiting.
                drop(std::panic::catch_unwind(work));
                lock(&shared.uploader).running = false;
                shared.ended.notify_all();
            });
        if started.is_err() {
            // It waits in the folder.
            lock(&inner.uploader).running = false;
        }
    }
}

impl Inner {
    fn upload(&self) {
        loop {
            lock(&self.uploader).asked = false;
            let done = upload::drain(&self.layers, &self.store, AT_MOST, UploadMode::Background);
            let stuck = match done {
                Ok(reports) => reports.iter().all(|report| report.waiting > 0),
                Err(_) => true,
            };
            let mut uploader = lock(&self.uploader);
            if stuck || !uploader.asked {
                // This happens under the lock, so that the next new result starts another uploader.
                uploader.running = false;
                return;
            }
        }
    }
}

impl Upstream for SharedCache {
    fn fetch(&self, store: &DiskStore, wanted: &[FetchRequest<'_>]) -> bool {
        // In a forked child the thread that waits for the network is the parent's.
        std::process::id() == self.0.process && self.0.shared.fetch(store, wanted)
    }

    /// As [`CacheLayers`] does; an upload begins beside the caller, of what is in the store that this was opened with.
    fn offer(&self, store: &DiskStore, level: Level, key: &Key) {
        let inner = &self.0;
        inner.shared.offer(store, level, key);
        let writes = |layer: &Layer| layer.access == Access::ReadWrite;
        if std::process::id() == inner.process && inner.layers.iter().any(writes) {
            Self::upload_in_background(inner);
        }
    }

    fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0.warnings))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
