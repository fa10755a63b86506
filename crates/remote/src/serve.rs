//! Answers the requests of one warpcc, each on a thread of its own, until there are no more.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use warpcc_cache::{FetchRequest, Outcome, Upstream, WorkDir};
use warpcc_remote::execute::TransferStats;
use warpcc_remote::grpc::{Address, Deadlines, NotAnAddress};
use warpcc_remote::upload::{UploadMode, UploadReport};
use warpcc_remote::{CacheLayers, Cluster, Grpc, Layer, RemoteError, keys, ping, upload};
use warpcc_remote_client::protocol::{
    BEAT, DoneSent, FetchRequestSent, LONGEST_IDENTITY, Opening, Question, Reply, ReplyBody,
    TimeBudgetSent, identity,
};
use warpcc_remote_client::sent::{CommandSent, StoreSent};
use warpcc_remote_client::{read_frame, write_frame};

/// How long the asking program may take to accept or refuse a result.
const JUDGES_WITHIN: Duration = Duration::from_secs(60);

/// The work for a question, on its own thread.
type Work = Box<dyn FnOnce(&Arc<RemoteProgram>) -> ReplyBody + Send>;

/// State that all questions share.
struct RemoteProgram {
    to: Mutex<UnixStream>,
    opening: Opening,
    layers: Vec<Layer>,
    shared: OnceLock<CacheLayers<'static>>,
    cluster: OnceLock<Result<Cluster, RemoteError>>,
    /// The receivers of the asking program's decisions about results, by the request's number.
    judged: Mutex<BTreeMap<u64, Sender<Option<Outcome>>>>,
    /// Set when the answer to a request is not wanted any more.
    cancelled: Mutex<BTreeMap<u64, Arc<AtomicBool>>>,
}

/// Answers `asker` until it is gone.
pub fn serve(asker: UnixStream) -> ExitCode {
    let Ok(from) = asker.try_clone() else {
        return ExitCode::FAILURE;
    };
    let (mut from, mut to) = (BufReader::new(from), asker);
    if write_frame(&mut to, &identity()).is_err() {
        return ExitCode::FAILURE;
    }
    let theirs = read_frame::<String>(&mut from, Some(LONGEST_IDENTITY));
    // It hears who we are, and says so.
    if !theirs.is_ok_and(|theirs| theirs == identity()) {
        return ExitCode::FAILURE;
    }
    let Ok(opening) = read_frame::<Opening>(&mut from, None) else {
        return ExitCode::FAILURE;
    };
    #[cfg(debug_assertions)]
    warpcc_cache::guards::switch_off(&opening.switched_off);
    let layers = opening.layers.iter().cloned().map(|sent| sent.layer());
    let Ok(layers) = layers.collect() else {
        return ExitCode::FAILURE;
    };
    let service = Arc::new(RemoteProgram {
        to: Mutex::new(to),
        opening,
        layers,
        shared: OnceLock::new(),
        cluster: OnceLock::new(),
        judged: Mutex::default(),
        cancelled: Mutex::default(),
    });
    let beating = Arc::clone(&service);
    let beat = thread::Builder::new().spawn(move || {
        loop {
            thread::sleep(BEAT);
            beating.say(&Reply::Alive);
        }
    });
    if beat.is_err() {
        return ExitCode::FAILURE;
    }
    while let Ok(question) = read_frame::<Question>(&mut from, None) {
        service.take(question);
    }
    // The program that asked has ended, so no running request is needed.
    std::process::exit(0)
}

impl RemoteProgram {
    /// Waits while the asking program is stopped. If it has ended, this program ends too.
    fn say(&self, reply: &Reply) {
        if write_frame(&mut *lock(&self.to), reply).is_err() {
            std::process::exit(1);
        }
    }

    fn reply(&self, id: u64, body: ReplyBody) {
        self.say(&Reply::To(id, body));
    }

    fn take(self: &Arc<Self>, question: Question) {
        let (id, work): (u64, Work) = match question {
            Question::Vetted { id, outcome } => {
                if let Some(judged) = lock(&self.judged).get(&id) {
                    // Perhaps nobody waits any more.
                    drop(judged.send(outcome));
                }
                return;
            }
            Question::Cancel { id } => {
                if let Some(cancelled) = lock(&self.cancelled).get(&id) {
                    cancelled.store(true, Ordering::SeqCst);
                }
                return;
            }
            Question::Fetch { id, wanted } => (id, Box::new(move |all| all.fetch(id, &wanted))),
            Question::Ping { id, layer, limit } => {
                (id, Box::new(move |all| all.ping(layer, limit)))
            }
            Question::Keygen { id, name } => (
                id,
                Box::new(move |_| ReplyBody::Keys(keys::generate(&name))),
            ),
            Question::Upload {
                id,
                store,
                limit,
                mode,
            } => (id, Box::new(move |all| all.upload(&store, limit, mode))),
            Question::Execute {
                id,
                command,
                properties,
            } => {
                let cancelled = Arc::new(AtomicBool::new(false));
                lock(&self.cancelled).insert(id, Arc::clone(&cancelled));
                let work = move |all: &Arc<Self>| {
                    let body = all.execute(command, &properties, &cancelled);
                    lock(&all.cancelled).remove(&id);
                    body
                };
                (id, Box::new(work))
            }
        };
        let all = Arc::clone(self);
        let started = thread::Builder::new().spawn(move || {
            // This uses hundreds of crates. After a panic in one of them the asking program would wait for an answer.
            let done = std::panic::AssertUnwindSafe(|| work(&all));
            match std::panic::catch_unwind(done) {
                Ok(body) => all.reply(id, body),
                Err(_) => std::process::exit(1),
            }
        });
        if started.is_err() {
            // The asking program notices that this one has ended, and goes on without it.
            std::process::exit(1);
        }
    }

    fn shared(self: &Arc<Self>) -> Option<&CacheLayers<'static>> {
        let root = self.opening.store.as_ref()?.root();
        Some(self.shared.get_or_init(|| {
            let program = Arc::downgrade(self);
            let shared = CacheLayers::new(&self.layers, &root, move |text| {
                if let Some(all) = program.upgrade() {
                    all.say(&Reply::Warning(text.to_owned()));
                }
            });
            match self.opening.time_budget {
                TimeBudgetSent::PerCall => shared,
                TimeBudgetSent::PerQuestion => shared.for_long_process(),
            }
        }))
    }

    fn fetch(self: &Arc<Self>, id: u64, wanted: &[FetchRequestSent]) -> ReplyBody {
        let nothing = ReplyBody::Fetched {
            brought: false,
            noted: false,
        };
        let store = self.opening.store.as_ref().map(StoreSent::open);
        let (Some(Ok(store)), Some(shared)) = (store, self.shared()) else {
            return nothing;
        };
        let (judge, judged) = channel();
        lock(&self.judged).insert(id, judge);
        // One decision at a time, because a decision has no request number of its own.
        let judged = Mutex::new(judged);
        let vet = |index: usize, outcome: &mut Outcome| {
            let judged = lock(&judged);
            let asked = outcome.clone();
            self.reply(
                id,
                ReplyBody::Vet {
                    index,
                    outcome: asked,
                },
            );
            match judged.recv_timeout(JUDGES_WITHIN) {
                Ok(Some(accepted)) => {
                    *outcome = accepted;
                    true
                }
                Ok(None) | Err(_) => false,
            }
        };
        let vets: Vec<_> = (0..wanted.len())
            .map(|index| move |outcome: &mut Outcome| vet(index, outcome))
            .collect();
        let places: Vec<_> = wanted
            .iter()
            .map(|one| (one.at.directory(), one.at.path_map()))
            .collect();
        let all: Vec<_> = wanted
            .iter()
            .zip(&vets)
            .zip(&places)
            .map(|((one, vet), (directory, path_map))| FetchRequest {
                level: one.level,
                key: &one.key,
                at: WorkDir {
                    directory,
                    path_map,
                },
                vet,
            })
            .collect();
        let brought = shared.fetch(&store, &all);
        lock(&self.judged).remove(&id);
        ReplyBody::Fetched {
            brought,
            noted: shared.has_noted(),
        }
    }

    fn ping(&self, layer: usize, limit: Duration) -> ReplyBody {
        ReplyBody::Pinged(match self.layers.get(layer) {
            Some(layer) => ping::ping(layer, limit),
            None => Err(no_such("shared cache")),
        })
    }

    fn upload(&self, store: &StoreSent, limit: Duration, mode: UploadMode) -> ReplyBody {
        let done = || -> Result<Vec<UploadReport>, String> {
            let store = store.open().map_err(|error| error.to_string())?;
            upload::drain(&self.layers, &store, limit, mode).map_err(|error| error.to_string())
        };
        ReplyBody::Uploaded(done())
    }

    fn cluster(&self) -> Result<&Cluster, RemoteError> {
        let made = self.cluster.get_or_init(|| {
            let (address, auth) = self
                .opening
                .cluster
                .clone()
                .ok_or_else(|| no_such("cluster"))?;
            let address: Address =
                address
                    .parse()
                    .map_err(|why: NotAnAddress| RemoteError::Answer {
                        server: address.clone(),
                        why: why.to_string(),
                    })?;
            Grpc::new(address, auth.into(), Deadlines::default()).map(Cluster::new)
        });
        made.as_ref().map_err(Clone::clone)
    }

    fn execute(
        &self,
        command: CommandSent,
        properties: &[(String, String)],
        cancelled: &AtomicBool,
    ) -> ReplyBody {
        let mut moved = TransferStats::default();
        let (command, folder) = command.command();
        let is_cancelled = || cancelled.load(Ordering::SeqCst);
        let done = self.cluster().and_then(|cluster| {
            cluster.run(&command, properties, &folder, &is_cancelled, &mut moved)
        });
        let done = done.map(|done| {
            done.map(|done| DoneSent {
                code: done.code,
                stdout: done.stdout,
                stderr: done.stderr,
                written: done.outputs.iter().map(Option::is_some).collect(),
                busy: done.busy,
            })
        });
        ReplyBody::Executed { done, moved }
    }
}

/// The error for a server that is not in the opening.
fn no_such(what: &str) -> RemoteError {
    RemoteError::Local {
        path: format!("the {what}"),
        why: "is not in the settings that warpcc-remote was given".to_owned(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
