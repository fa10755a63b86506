//! One call of nvcc from its command line to its end: prepared, looked up, built, recorded.
//!
//! The launcher, `warpcc run` and `warpcc explain` all use it. They differ in their wishes and their listeners.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpcc_cache::{DiskStore, Key, KeyParts, KeyVariants, Upstream};
use warpcc_engine::Executor;
use warpcc_path_map::BaseDirs;
use warpcc_plan::Unsupported;
use warpcc_remote_client::{RemoteProgram, SharedCaches};

use crate::build::{self, BuildListener, BuildOptions, Built};
use crate::bypass::Bypass;
use crate::call_record::CallRecorder;
use crate::cluster::{Elsewhere, NamedCluster};
use crate::direct::Served;
use crate::log::Log;
use crate::process_context::ProcessContext;
use crate::progress::Progress;
use crate::request::Request;
use crate::scratch::{self, Naming, Scratch, Wanted};
use crate::signals::Interrupt;
use crate::twin::Twin;
use crate::{direct, history, remotes, resources, standard_streams};

/// Where a call comes from, and where it is noted.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The surroundings of this process.
    pub around: &'a ProcessContext,
    /// The cache, the settings, and the record of the call.
    pub account: &'a CallRecorder<'a>,
    /// The log.
    pub log: &'a Log,
}

/// A call that is understood.
pub struct Session<'a> {
    /// The parsed call.
    pub request: Request,
    call: Call<'a>,
    listing: KeyParts,
    keys: KeyVariants,
    /// Calls that may have made the same result; only a miss looks for them.
    twins: OnceCell<Vec<Twin>>,
}

/// How a miss begins.
enum Begun {
    /// Another process made the result meanwhile, in this many microseconds of processor time.
    Hit(u64),
    /// No other process did: the private folder to build in.
    Build(Scratch),
}

/// How a call is to be carried out.
pub struct Wishes<'a> {
    /// Whether the whole call may be answered from a cache.
    pub looks_up: bool,
    /// Whether other machines may run steps.
    pub may_leave: bool,
    /// At most this many tasks at a time; when not given, as many as the settings say.
    pub jobs: Option<NonZeroUsize>,
    /// Whether commands run one at a time, in nvcc's order.
    pub sequential: bool,
    /// Whether exactly nvcc's commands run.
    pub faithful: bool,
    /// The folder to copy each command's files to.
    pub save: Option<&'a Path>,
    /// The listener that looks at each command's files as soon as the command has ended.
    pub listener: Option<&'a dyn BuildListener>,
    /// The line on the terminal.
    pub progress: Option<&'a Progress>,
}

impl Wishes<'_> {
    /// The wishes of the launcher. A build system owns the terminal, so there is no progress line.
    pub fn of_launcher() -> Self {
        Self {
            looks_up: true,
            may_leave: true,
            jobs: None,
            sequential: false,
            faithful: false,
            save: None,
            listener: None,
            progress: None,
        }
    }
}

/// An input that is no regular file, such as `/dev/stdin`, or a pipe that any option names (`-include <(…)` of a shell).
/// Such a file can be read only once, and the order of the steps decides which one reads it.
fn odd_input(request: &Request, args: &[OsString]) -> Option<String> {
    let kind = |path: &str| {
        let found = std::fs::metadata(request.absolute(path));
        found.ok().map(|found| found.file_type())
    };
    let inputs = request.invocation.inputs.iter();
    let mut odd = inputs.filter(|input| kind(input).is_some_and(|kind| !kind.is_file()));
    let words = args.iter().filter_map(|word| word.to_str());
    let values = words.map(|word| word.split_once('=').map_or(word, |(_, value)| value));
    let outputs = request.invocation.outputs();
    let is_output = |word: &str| outputs.iter().any(|output| output.path == *word);
    let is_pipe = |word: &&str| kind(word).is_some_and(|kind| kind.is_fifo()) && !is_output(word);
    odd.next().cloned().or_else(|| {
        values
            .filter(|word| !word.starts_with('-'))
            .find(is_pipe)
            .map(str::to_owned)
    })
}

impl<'a> Session<'a> {
    /// Parses a call. Names of folders of `base_dirs` do not count.
    ///
    /// # Errors
    /// Why plain nvcc has to carry out the call.
    pub fn prepare(
        nvcc: &Path,
        args: &[OsString],
        base_dirs: &BaseDirs,
        call: Call<'a>,
    ) -> Result<Self, Bypass> {
        let around = call.around;
        if around.directory.as_os_str().is_empty() {
            return Err(Unsupported::new("the working directory is gone", "").into());
        }
        if standard_streams::any_was_closed() {
            return Err(Unsupported::new(standard_streams::CLOSED, "").into());
        }
        if resources::has_little_memory() {
            return Err(Unsupported::new(resources::LITTLE_MEMORY, "").into());
        }
        let request = Request::new(
            nvcc.to_owned(),
            args,
            around.directory.clone(),
            around.environment.clone(),
            base_dirs,
        )?;
        if let Some(reason) = request.invocation.plain {
            return Err(Bypass::Plain(reason));
        }
        if let Some(odd) = odd_input(&request, args) {
            return Err(Unsupported::new("an input is not a regular file", odd).into());
        }
        let listing = request.listing();
        let keys = request.keys(&listing);
        Ok(Self {
            request,
            call,
            listing,
            keys,
            twins: OnceCell::new(),
        })
    }

    /// Answers the call from a cache, or builds it. `listen` gets the finished build, and how long it took, while the
    /// intermediate files are there. Gives nvcc's exit code.
    ///
    /// # Errors
    /// Why plain nvcc has to carry out the call. Nothing was shown or put in place then.
    pub fn complete(
        &self,
        wishes: &Wishes<'_>,
        listen: impl FnOnce(&Request, (&Built, Duration)),
    ) -> Result<i32, Bypass> {
        let Call {
            around,
            account,
            log,
        } = self.call;
        let (config, store) = (account.config, account.store);
        let looks_up = wishes.looks_up && !config.recache.value;
        let difference = match self.look_up(looks_up) {
            Served::Hit(micros) => return Ok(self.hit(micros)),
            Served::Miss(difference) => difference,
            Served::NotOurs(why) => return Err(why.into()),
        };
        if let Some(store) = store.filter(|_| !config.recache.value)
            && history::is_known_stray(store, self.keys.base())
        {
            return Err(Unsupported::new(build::STRAY, "an earlier call did").into());
        }
        let interrupt = Interrupt::watch(config.stall_timeout.value);
        let scratch = match self.begin(looks_up, &interrupt)? {
            Begun::Hit(micros) => return Ok(self.hit(micros)),
            Begun::Build(scratch) => scratch,
        };
        // A step that hits, or runs elsewhere, leaves only the files that other steps read.
        let wants_all_files = wishes.save.is_some();
        let may_leave = wishes.may_leave && !wants_all_files;
        let cluster = may_leave.then(|| NamedCluster::of(config)).flatten();
        let remote = Arc::new(self.remote_program(cluster.as_ref()));
        let shared = self.shared_caches(&remote);
        let upload = || {
            if shared.as_ref().is_some_and(SharedCaches::needs_uploader) {
                history::upload_in_background(&around.ourselves[0]);
            }
        };
        if looks_up
            && let (Some(shared), Some(store)) = (&shared, store)
            && self.fetch(shared, store)
            && let Served::Hit(micros) = self.look_up(true)
        {
            drop(scratch);
            upload();
            return Ok(self.hit(micros));
        }
        let admission = resources::admission(config, account.lineage, &self.request, store, log);
        let elsewhere = cluster.and_then(|named| Elsewhere::new(&named, &remote, config, store));
        let options = BuildOptions {
            progress: wishes.progress,
            store,
            reads_cache: !config.recache.value && !wants_all_files,
            writes_cache: store.is_some() && !config.readonly.value,
            upstream: shared.as_ref().map(|shared| shared as &dyn Upstream),
            keys: &self.keys,
            twins: self.twins(),
            jobs: wishes.jobs.unwrap_or_else(|| config.job_limit()).get(),
            admission: &admission,
            executor: elsewhere.as_ref().map(|cluster| cluster as &dyn Executor),
            sequential: wishes.sequential,
            faithful: wishes.faithful,
            save: wishes.save,
            listener: wishes.listener,
            started: around.started,
            ourselves: &around.ourselves,
        };
        let clock = Instant::now();
        let built = build::build(&self.request, &options, &scratch, &interrupt);
        if let Ok(built) = &built {
            listen(&self.request, (built, clock.elapsed()));
        }
        drop(scratch);
        let built = built.inspect_err(|why| {
            if let Some(store) = store.filter(|_| why.reason == build::STRAY) {
                history::note_stray(store, self.keys.base());
            }
        })?;
        log_build(log, &built);
        account.built(&self.request, &self.listing, &built, difference.as_ref());
        if let Some(store) = store.filter(|_| options.writes_cache) {
            self.tidy_up(store);
        }
        upload();
        Ok(built.code)
    }

    /// The shared caches; `None` where the call may neither read nor write them.
    fn shared_caches(&self, remote: &Arc<RemoteProgram>) -> Option<SharedCaches> {
        let CallRecorder { config, store, .. } = self.call.account;
        let layers = config.layers();
        let is_used = !config.recache.value || !config.readonly.value;
        let store = store.filter(|_| is_used && !layers.is_empty())?;
        Some(SharedCaches::new(Arc::clone(remote), layers, store.root()))
    }

    /// The program that talks to the shared caches and the cluster. It is started at the first request.
    fn remote_program(&self, cluster: Option<&NamedCluster>) -> RemoteProgram {
        let Call {
            around, account, ..
        } = self.call;
        let cluster = cluster.map(|named| (named.address.to_string(), &named.auth));
        remotes::for_call(
            &around.ourselves[0],
            &account.config.layers(),
            account.store,
            cluster,
        )
    }

    /// The call's twins, where there is a cache to share results through.
    fn twins(&self) -> &[Twin] {
        self.twins.get_or_init(|| match self.call.account.store {
            Some(_) => Twin::of(&self.request),
            None => Vec::new(),
        })
    }

    /// Looks the call up in the cache on this disk, and then its twins.
    fn look_up(&self, looks_up: bool) -> Served {
        let Some(store) = self.call.account.store.filter(|_| looks_up) else {
            return Served::Miss(None);
        };
        let served = self.look_up_as(store, &self.request, &self.keys);
        if !matches!(served, Served::Miss(_)) {
            return served;
        }
        for twin in self.twins() {
            if let Served::Hit(micros) = self.look_up_as(store, &twin.request, &twin.keys) {
                self.call.log.line(|| {
                    "made by a call that compiled the same source in another folder".to_owned()
                });
                return Served::Hit(micros);
            }
        }
        served
    }

    /// Asks the shared caches for the call and for its twins, all at once.
    fn fetch(&self, shared: &SharedCaches, store: &DiskStore) -> bool {
        let mut names = vec![(&self.request, &self.keys)];
        names.extend(self.twins().iter().map(|twin| (&twin.request, &twin.keys)));
        direct::fetch(shared, store, &names)
    }

    fn look_up_as(&self, store: &DiskStore, request: &Request, keys: &KeyVariants) -> Served {
        let served = direct::serve(store, request, keys);
        let log = self.call.log;
        match &served {
            Ok(Served::Miss(Some(difference))) => {
                log.line(|| format!("no direct hit: {} differs", difference.path().display()));
            }
            Ok(_) => {}
            Err(error) => log.line(|| format!("direct hit not usable: {error}")),
        }
        served.unwrap_or(Served::Miss(None))
    }

    fn hit(&self, micros: u64) -> i32 {
        self.call.account.direct_hit(&self.request, micros);
        self.call.log.line(|| "direct hit".to_owned());
        0
    }

    /// Waits for another call that makes the same result. Takes a private folder if there is no such result.
    ///
    /// Twins wait for each other, too, but not one after another: the first one's result shows whether they can share. They
    /// do not wait at all where the last call with these options could not share.
    fn begin(&self, looks_up: bool, interrupt: &Interrupt) -> Result<Begun, Unsupported> {
        let own = self.keys.base();
        let store = self.call.account.store.filter(|_| looks_up);
        let shares = |twin: &&Twin| store.is_some_and(|store| twin.may_share(store));
        let twins = self.twins().iter().find(shares);
        let twins = twins.map(|twin| twin.keys.base());
        if let Some(name) = twins {
            let (scratch, waited) = self.open_scratch(name, interrupt)?;
            if !waited {
                return Ok(Begun::Build(scratch));
            }
            if let Served::Hit(micros) = self.look_up(looks_up) {
                return Ok(Begun::Hit(micros));
            }
        }
        let (scratch, waited) = self.open_scratch(own, interrupt)?;
        match self.look_up(looks_up && waited) {
            Served::Hit(micros) => Ok(Begun::Hit(micros)),
            _ => Ok(Begun::Build(scratch)),
        }
    }

    /// The private folder of this name, and whether another process had it until now.
    fn open_scratch(
        &self,
        name: Key,
        interrupt: &Interrupt,
    ) -> Result<(Scratch, bool), Unsupported> {
        let wanted = Wanted {
            temporary: &self.request.temporary(),
            name: &name.hex()[..16],
            naming: Naming::with_debug(self.request.invocation.debug),
        };
        let opened = Scratch::open(&wanted, &interrupt.scratch, self.call.log);
        let advice = match &opened {
            Ok((scratch, _)) => scratch.advice(),
            Err(error) => error.advice(),
        };
        if let Some(advice) = advice {
            self.call.account.warn_once(&advice);
        }
        opened.map_err(|error| Unsupported::new(error.reason(), error.to_string()))
    }

    fn tidy_up(&self, store: &DiskStore) {
        scratch::sweep(&self.request.temporary());
        if store.needs_gc() {
            history::collect_in_background(&self.call.around.ourselves[0]);
        }
    }
}

/// Logs how a build went.
fn log_build(log: &Log, built: &Built) {
    log.line(|| match &built.not_stored {
        None => format!("built, exit code {}", built.code),
        Some(why) => format!(
            "built, exit code {}; will not hit as a whole: {why}",
            built.code
        ),
    });
    for task in &built.run.tasks {
        if let Some(why) = &task.not_stored {
            log.line(|| format!("{} not stored: {why}", built.graph.steps[task.step].tool));
        }
    }
    if let Some(why) = built.retried {
        log.line(|| format!("ran twice: {why}"));
    }
}
