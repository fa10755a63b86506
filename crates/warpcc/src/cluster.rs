//! Runs the engine's commands on the cluster of `WARPCC_EXECUTOR`. Warns once if the cluster cannot be used.
//!
//! After a cluster could not be reached, no call uses it for a while, so that a build of a thousand files waits for it once.

mod estimates;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use estimates::Estimates;
use warpcc_budget::Pool;
use warpcc_cache::command::Done;
use warpcc_cache::{Digest, DiskStore, Hashing, Key, KeySink};
use warpcc_engine::Executor;
use warpcc_engine::executor::{RemoteEstimate, RemoteJob};
use warpcc_plan::Tool;
use warpcc_remote_client::auth::{Origin, Secret};
use warpcc_remote_client::transfer_stats::TransferStats;
use warpcc_remote_client::{Address, Auth, RemoteError, RemoteProgram};

use crate::config::{Config, ExecutorSettings};
use crate::resources;

/// How long a cluster is not used after it did not answer.
const PAUSE: Duration = Duration::from_secs(60);

/// The number of wrong answers after which a cluster is paused.
const MOST_WRONG_ANSWERS: u32 = 3;

/// The kind of the notes on paused clusters.
const PAUSES: &str = "clusters-v1";

/// The kind of the notes with estimates.
const ESTIMATES: &str = "cluster-outlooks-v1";

/// The cluster that the settings name, and the credentials for it.
pub struct ClusterAddress {
    /// The cluster's address.
    pub address: Address,
    /// The credentials.
    pub auth: Auth,
}

impl ClusterAddress {
    /// The cluster of `config`; `None`, with a warning, where the settings cannot be used.
    pub fn from_config(config: &Config) -> Option<Self> {
        let address = config.executor.address.value.clone()?;
        match auth(&config.executor) {
            Ok(auth) => Some(Self { address, auth }),
            Err(why) => {
                crate::log::warn(&format!("{why}; commands run here"));
                None
            }
        }
    }
}

/// A cluster, as one call uses it.
pub struct Cluster<'a> {
    /// The cluster's name in messages.
    name: String,
    remote: Arc<RemoteProgram>,
    /// Bytes sent and received so far, including those of commands that gave no result.
    moved: Mutex<TransferStats>,
    settings: &'a ExecutorSettings,
    store: Option<&'a DiskStore>,
    is_abandoned: AtomicBool,
    wrong_answers: AtomicU32,
    faults: AtomicU64,
    slots: Pool,
    estimates: Mutex<Estimates>,
}

impl<'a> Cluster<'a> {
    /// The cluster that was `named`, reached through `remote`; `None` while it is paused.
    pub fn new(
        named: &ClusterAddress,
        remote: &Arc<RemoteProgram>,
        config: &'a Config,
        store: Option<&'a DiskStore>,
    ) -> Option<Self> {
        let settings = &config.executor;
        let promised = |tool: &&String| settings.promises(tool);
        if let Some(tool) = settings.installed.value.iter().find(|t| !promised(t)) {
            crate::log::warn(&format!(
                "{tool} is in executor_installed, but no executor_properties entry applies to it; uploading it instead"
            ));
        }
        let name = named.address.to_string();
        let key = key_of(&name);
        let slots = Pool::open(
            &resources::place(config),
            &format!("cluster-{}", key.hex()),
            settings.jobs.value.get(),
        );
        let estimates = store.and_then(|store| store.note(ESTIMATES, &key));
        let estimates = estimates.map(|bytes| Estimates::from_bytes(&bytes, SystemTime::now()));
        let cluster = Self {
            slots,
            estimates: Mutex::new(estimates.unwrap_or_default()),
            name,
            remote: Arc::clone(remote),
            moved: Mutex::default(),
            settings,
            store,
            is_abandoned: AtomicBool::new(false),
            wrong_answers: AtomicU32::new(0),
            faults: AtomicU64::new(0),
        };
        (!cluster.is_paused()).then_some(cluster)
    }

    fn lock_estimates(&self) -> MutexGuard<'_, Estimates> {
        self.estimates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn note_key(&self) -> Key {
        key_of(&self.name)
    }

    fn is_paused(&self) -> bool {
        let noted = self.store.and_then(|s| s.note(PAUSES, &self.note_key()));
        let Some(since) = noted.and_then(|bytes| bytes.try_into().ok()) else {
            return false;
        };
        let since = UNIX_EPOCH + Duration::from_secs(u64::from_le_bytes(since));
        // If the clock was set back, the pause is over.
        let age = SystemTime::now().duration_since(since);
        age.is_ok_and(|age| age < PAUSE)
    }

    /// Counts a fault, and decides whether later commands still go to the cluster.
    fn learn(&self, fault: &RemoteError) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let is_dead = match fault {
            RemoteError::Unreachable { .. }
            | RemoteError::TooSlow { .. }
            | RemoteError::Busy { .. }
            | RemoteError::Refused { .. } => true,
            RemoteError::Answer { .. }
            | RemoteError::WrongBytes { .. }
            | RemoteError::Key { .. }
            | RemoteError::Local { .. } => {
                self.wrong_answers.fetch_add(1, Ordering::SeqCst) + 1 >= MOST_WRONG_ANSWERS
            }
        };
        if !is_dead {
            return;
        }
        if !self.is_abandoned.swap(true, Ordering::SeqCst) {
            crate::log::warn(&format!("{fault}; commands run here for a while"));
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.unwrap_or_default().as_secs().to_le_bytes();
            if let Some(store) = self.store {
                // If the note cannot be written, the next call tries the cluster itself.
                drop(store.put_note(PAUSES, &self.note_key(), &now));
            }
        }
    }
}

impl Drop for Cluster<'_> {
    /// Adds the bytes that the call sent and received, and its errors, to the counters of `warpcc stats`.
    fn drop(&mut self) {
        let moved = *self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = [
            ("executor.bytes_up", moved.sent),
            ("executor.bytes_down", moved.received),
            ("executor.errors", self.faults.load(Ordering::Relaxed)),
        ];
        if let Some(store) = self.store.filter(|_| counts.iter().any(|(_, n)| *n > 0)) {
            store.count(&counts);
            // If two calls end at the same time, the estimates of one are lost. The next call learns them again.
            let known = self.lock_estimates().to_bytes(SystemTime::now());
            drop(store.put_note(ESTIMATES, &self.note_key(), &known));
        }
    }
}

/// The key of the notes about a cluster.
fn key_of(name: &str) -> Key {
    let mut sink = Hashing::new("cluster");
    sink.part("name", name.as_bytes());
    sink.finish()
}

fn auth(settings: &ExecutorSettings) -> Result<Auth, String> {
    let token = settings.token.value.clone().map(Origin::Given);
    let token_file = settings.token_file.value.clone().map(Origin::File);
    let headers = match &settings.headers.value {
        Some(path) => headers(path)?,
        None => Vec::new(),
    };
    let client = match (&settings.certificate.value, &settings.key.value) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        _ => return Err("set both executor_certificate and executor_key, or neither".to_owned()),
    };
    Ok(Auth {
        token: token.or(token_file),
        headers,
        helper: settings.helper.value.clone(),
        roots: settings.roots.value.clone(),
        client,
    })
}

/// Reads a file with `NAME: VALUE` in each line; `#` begins a remark. No message contains a value.
fn headers(path: &Path) -> Result<Vec<(String, Origin)>, String> {
    let text = fs::read_to_string(path)
        .map_err(|e| format!("cannot read the headers in {}: {e}", path.display()))?;
    let mut headers = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("{}:{}: no NAME: VALUE", path.display(), number + 1))?;
        headers.push((name.trim().to_owned(), Origin::Given(Secret::new(value))));
    }
    Ok(headers)
}

impl Executor for Cluster<'_> {
    fn slots(&self) -> &Pool {
        &self.slots
    }

    fn estimate(&self, program: &Digest) -> RemoteEstimate {
        self.lock_estimates().estimate(program)
    }

    fn takes(&self, _: Tool) -> bool {
        !self.is_abandoned.load(Ordering::SeqCst)
    }

    fn has(&self, tool: Tool) -> bool {
        let installed = &self.settings.installed.value;
        installed.iter().any(|name| name == tool.name()) && self.settings.promises(tool.name())
    }

    fn is_preferred(&self) -> bool {
        self.settings.always.value
    }

    fn execute(&self, job: &RemoteJob<'_>, unwanted: &dyn Fn() -> bool) -> Option<Done> {
        let properties: Vec<(String, String)> = (self.settings.properties_of(job.tool.name()))
            .map(|property| (property.name.clone(), property.value.clone()))
            .collect();
        let mut moved = TransferStats::default();
        let clock = Instant::now();
        let ran = self.remote.execute(
            &self.name,
            &job.command,
            properties,
            job.folder,
            unwanted,
            &mut moved,
        );
        let mut all = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(&moved);
        drop(all);
        match ran {
            Ok(done) => {
                if let Some(done) = done.as_ref().filter(|done| done.code == 0) {
                    let mut known = self.lock_estimates();
                    known.learn(clock.elapsed(), done.busy, moved.timed, moved.took);
                    known.note_uploaded(job.command.inputs.iter().map(|input| input.digest));
                }
                done
            }
            Err(fault) => {
                self.learn(&fault);
                None
            }
        }
    }
}
