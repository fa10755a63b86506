//! The shared caches of the build (`warpcc-remote`) as the layer behind the folders of `warpcc-rtc`.
//!
//! As in a build, a result from elsewhere counts only out of a folder: it is fetched, proved and put there, and looked up
//! like any other; what is new is noted there until it is uploaded. So without a folder that may be written to there is
//! no shared layer. Who does not use this crate links no network.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use warpcc_cache::{DiskStore, Level, Options, Upstream};
use warpcc_remote::settings::Access;
use warpcc_remote::upload::{self, Account, UploadMode};
use warpcc_remote::{Layer, Shared};
use warpcc_rtc::{Entry, Environment, Key, Settings, SharedLayer, stored_entry, vetted};

/// How long one uploader is at it; what it does not get done waits for the next.
const AT_MOST: Duration = Duration::from_secs(300);
/// As good as for ever, and a time that clocks can count to.
const EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Whether `text` names shared caches as `WARPCC_REMOTE` does; `none` is none.
///
/// # Errors
/// What is wrong with it, without credentials.
pub fn check(text: &str, environment: &Environment) -> Result<(), String> {
    let get = |name: &str| environment.get(name)?.to_str().map(str::to_owned);
    let read = warpcc_remote::config_file::of_texts([text], &get);
    read.map(drop).map_err(|error| error.to_string())
}

/// Shared caches, near to far, behind a folder of compiled kernels. Cheap to clone; any thread may use it.
#[derive(Clone)]
pub struct SharedCache(Arc<Inner>);

struct Inner {
    layers: Vec<Layer>,
    /// The first folder that may be written to.
    store: DiskStore,
    shared: Shared<'static>,
    /// What went wrong, until somebody is told.
    told: Arc<Mutex<Vec<String>>>,
    /// A child that was forked has none of the threads.
    process: u32,
    uploader: Mutex<Uploader>,
    ended: Condvar,
}

#[derive(Default)]
struct Uploader {
    running: bool,
    /// Something was noted since it last looked.
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
    /// `layers`, near to far, behind the folders of `settings`; none where no layer is given. Reaches out to nobody yet.
    ///
    /// # Errors
    /// There is no folder to put results into, for people.
    pub fn open(layers: Vec<Layer>, settings: &Settings) -> Result<Option<Self>, String> {
        if layers.is_empty() {
            return Ok(None);
        }
        let tier = settings.tiers.iter().find(|tier| !tier.readonly);
        let tier = tier.ok_or("it is not used: there is no folder to put results into")?;
        let options = Options {
            max_size: tier.max_size,
            readonly: false,
        };
        let store = DiskStore::open(&tier.path, options)
            .map_err(|error| format!("it is not used: {error}"))?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&told);
        let shared = Shared::new(&layers, store.root(), move |text: &str| {
            held(&noted).push(text.to_owned());
        })
        .for_many_calls();
        Ok(Some(Self(Arc::new(Inner {
            layers,
            store,
            shared,
            told,
            process: std::process::id(),
            uploader: Mutex::default(),
            ended: Condvar::new(),
        }))))
    }

    /// Those that `WARPCC_REMOTE` or the settings file names, as in a build.
    ///
    /// # Errors
    /// The settings make no sense, or as [`SharedCache::open`].
    pub fn of_environment(
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Option<Self>, String> {
        let get = |name: &str| environment.get(name).map(ToOwned::to_owned);
        Self::open(warpcc_remote::config_file::layers(&get)?, settings)
    }

    /// The servers are to have what the folder has under `key`; an upload begins beside the caller.
    pub fn offer(&self, key: &Key) {
        let inner = &self.0;
        inner.shared.offer(&inner.store, Level::Kernels, key);
        let writes = |layer: &Layer| layer.access == Access::ReadWrite;
        if std::process::id() == inner.process && inner.layers.iter().any(writes) {
            Self::upload_beside(inner);
        }
    }

    /// Uploads what waits and waits for that, at most so long, and asks servers that are left alone too: a CI job's last
    /// step. What is not done then waits in the folder, for any process that uses it; says of each server why.
    pub fn flush(&self, limit: Duration) -> Vec<String> {
        let inner = &self.0;
        let limit = limit.min(EVER);
        let accounts = upload::drain(&inner.layers, &inner.store, limit, UploadMode::Asked);
        let accounts = match accounts {
            Ok(accounts) => accounts,
            Err(error) => return vec![format!("nothing is uploaded: {error}")],
        };
        let behind = accounts.iter().filter(|account| account.waiting > 0);
        behind.map(unfinished).collect()
    }

    /// Waits at most so long for an upload that is under way. True if none is now.
    pub fn settle(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit.min(EVER);
        let mut uploader = held(&self.0.uploader);
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

    fn upload_beside(inner: &Arc<Inner>) {
        let mut uploader = held(&inner.uploader);
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
                // Hundreds of crates lie below. A mistake in one of them must not leave others waiting.
                drop(std::panic::catch_unwind(work));
                held(&shared.uploader).running = false;
                shared.ended.notify_all();
            });
        if started.is_err() {
            // It waits in the folder.
            held(&inner.uploader).running = false;
        }
    }
}

impl Inner {
    fn upload(&self) {
        loop {
            held(&self.uploader).asked = false;
            let done = upload::drain(&self.layers, &self.store, AT_MOST, UploadMode::Background);
            let stuck = match done {
                Ok(accounts) => accounts.iter().all(|account| account.waiting > 0),
                Err(_) => true,
            };
            let mut uploader = held(&self.uploader);
            if stuck || !uploader.asked {
                // Under the lock, so that what is noted next starts another.
                uploader.running = false;
                return;
            }
        }
    }

    fn take_told(&self) -> Option<String> {
        let told = std::mem::take(&mut *held(&self.told));
        (!told.is_empty()).then(|| told.join("; "))
    }
}

impl SharedLayer for SharedCache {
    fn fetch(&self, key: &Key) -> Result<Option<Entry>, String> {
        let inner = &self.0;
        if std::process::id() != inner.process {
            // A forked child: the thread that waits for the network is the parent's.
            return Ok(None);
        }
        let keys = [*key];
        let brought =
            inner
                .shared
                .fetch(&inner.store, Level::Kernels, &keys, Path::new("/"), &vetted);
        if brought {
            return stored_entry(&inner.store, key);
        }
        inner.take_told().map_or(Ok(None), Err)
    }

    fn keep(&self, key: &Key, _entry: &Entry) -> Result<(), String> {
        // The folder has it already: the uploader takes it from there.
        self.offer(key);
        self.0.take_told().map_or(Ok(()), Err)
    }
}

fn unfinished(account: &Account) -> String {
    let Account {
        waiting, server, ..
    } = account;
    let why = account.why.as_deref().unwrap_or("the time was up");
    format!("{waiting} of the kernels wait to be uploaded to {server}: {why}")
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
