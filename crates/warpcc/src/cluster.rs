//! The engine's commands on the cluster of `WARPCC_EXECUTOR`: settings in, one warning out when it is of no use.
//!
//! A cluster that cannot be reached is left alone for a while by all calls, so that a build of a thousand files waits
//! for it once.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::{DiskStore, Hashing, Key, KeySink};
use warpcc_engine::Executor;
use warpcc_engine::executor::{Done, Job};
use warpcc_plan::Tool;
use warpcc_remote::auth::{Origin, Secret};
use warpcc_remote::grpc::Deadlines;
use warpcc_remote::{Auth, Cluster, Fault, Grpc, execute};

use crate::config::{Config, ExecutorSettings};

/// So long nobody asks a cluster that did not answer.
const LEFT_ALONE: Duration = Duration::from_secs(60);

/// So many odd answers are taken before it is left alone.
const ODD_ANSWERS: u32 = 3;

/// The folder of the cache with what is known of clusters.
const NOTES: &str = "clusters-v1";

/// A cluster, as one call uses it.
pub struct Elsewhere<'a> {
    cluster: Cluster,
    settings: &'a ExecutorSettings,
    store: Option<&'a DiskStore>,
    given_up: AtomicBool,
    odd: AtomicU32,
}

impl<'a> Elsewhere<'a> {
    /// The one that the settings name; none, with a warning, where they cannot be used, and none where it was found
    /// dead a moment ago.
    pub fn of(config: &'a Config, store: Option<&'a DiskStore>) -> Option<Self> {
        let settings = &config.executor;
        let address = settings.address.value.clone()?;
        let warn = |why: &str| crate::log::warn(&format!("{why}; commands run here"));
        let auth = match auth(settings) {
            Ok(auth) => auth,
            Err(why) => {
                warn(&why);
                return None;
            }
        };
        let server = match Grpc::new(address, auth, Deadlines::default()) {
            Ok(server) => server,
            Err(fault) => {
                warn(&fault.to_string());
                return None;
            }
        };
        let elsewhere = Self {
            cluster: Cluster::new(server),
            settings,
            store,
            given_up: AtomicBool::new(false),
            odd: AtomicU32::new(0),
        };
        (!elsewhere.is_left_alone()).then_some(elsewhere)
    }

    fn note_key(&self) -> Key {
        let mut sink = Hashing::new("cluster");
        sink.part("name", self.cluster.name().as_bytes());
        sink.finish()
    }

    fn is_left_alone(&self) -> bool {
        let noted = self.store.and_then(|s| s.note(NOTES, &self.note_key()));
        let Some(since) = noted.and_then(|bytes| bytes.try_into().ok()) else {
            return false;
        };
        let since = UNIX_EPOCH + Duration::from_secs(u64::from_le_bytes(since));
        // A clock that was set back does not keep us from it.
        let age = SystemTime::now().duration_since(since);
        age.is_ok_and(|age| age < LEFT_ALONE)
    }

    /// What a fault means for the commands to come.
    fn learn(&self, fault: &Fault) {
        let is_dead = match fault {
            Fault::Unreachable { .. } | Fault::TooSlow { .. } | Fault::Refused { .. } => true,
            Fault::Answer { .. } | Fault::WrongBytes { .. } | Fault::Local { .. } => {
                self.odd.fetch_add(1, Ordering::SeqCst) + 1 >= ODD_ANSWERS
            }
        };
        if !is_dead {
            return;
        }
        if !self.given_up.swap(true, Ordering::SeqCst) {
            crate::log::warn(&format!("{fault}; commands run here for a while"));
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.unwrap_or_default().as_secs().to_le_bytes();
            if let Some(store) = self.store {
                // Without the note the next call finds out for itself.
                drop(store.put_note(NOTES, &self.note_key(), &now));
            }
        }
    }
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
        _ => return Err("executor_certificate and executor_key belong together".to_owned()),
    };
    Ok(Auth {
        token: token.or(token_file),
        headers,
        helper: settings.helper.value.clone(),
        roots: settings.roots.value.clone(),
        client,
    })
}

/// `NAME: VALUE` in each line; `#` begins a remark. What is in it stands in no message.
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

impl Executor for Elsewhere<'_> {
    fn slots(&self) -> usize {
        self.settings.jobs.value.get()
    }

    fn takes(&self, _: Tool) -> bool {
        !self.given_up.load(Ordering::SeqCst)
    }

    fn is_preferred(&self) -> bool {
        self.settings.always.value
    }

    fn execute(&self, job: &Job<'_>, unwanted: &dyn Fn() -> bool) -> Option<Done> {
        let properties = self.settings.properties.value.iter().filter(|property| {
            let tool = property.tool.as_deref();
            tool.is_none_or(|tool| tool == job.tool.name())
        });
        let command = execute::Command {
            arguments: job.arguments.clone(),
            environment: job.environment.clone(),
            inputs: job
                .inputs
                .iter()
                .map(|input| execute::Input {
                    path: input.path.clone(),
                    digest: input.digest,
                    file: input.file.clone(),
                    executable: input.executable,
                })
                .collect(),
            outputs: job.outputs.clone(),
            properties: properties
                .map(|property| (property.name.clone(), property.value.clone()))
                .collect(),
        };
        match self.cluster.run(&command, job.folder, unwanted) {
            Ok(done) => done.map(|done| Done {
                code: done.code,
                stdout: done.stdout,
                stderr: done.stderr,
                outputs: done.outputs,
                busy: done.busy,
            }),
            Err(fault) => {
                self.learn(&fault);
                None
            }
        }
    }
}
