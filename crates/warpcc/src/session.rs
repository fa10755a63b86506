//! Carries out one call of nvcc: parses it, looks it up, builds it after a miss, and records it.
//!
//! The launcher, `warpcc run` and `warpcc explain` all use this. They differ in their [`CallOptions`] and their listeners.

mod call;
mod lookup;
mod options;
mod repeated_variable;
mod unusable_directory;
mod unusable_input;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpcc_cache::{DiskStore, KeyParts, KeyVariants, Upstream};
use warpcc_engine::Executor;
use warpcc_engine::held::HELD;
use warpcc_path_map::BaseDirs;
use warpcc_plan::Unsupported;
use warpcc_remote_client::{RemoteProgram, SharedCaches};

pub use self::call::Call;
use self::lookup::{AfterWait, CallLookup};
pub use self::options::CallOptions;
pub use self::repeated_variable::{REPEATED_VARIABLE, repeated_variable};
pub use self::unusable_directory::{DIRECTORY_GONE, DIRECTORY_HIDDEN, unusable_directory};
use self::unusable_input::{irregular_input, missing_input};
use crate::build::{self, BuildOptions, Built};
use crate::bypass::{Bypass, MISSING_INPUT};
use crate::cluster::{Cluster, ClusterAddress};
use crate::direct::DirectLookup;
use crate::log::Log;
use crate::request::Request;
use crate::scratch::{self, Scratch};
use crate::signals::Interrupt;
use crate::{history, remotes, resources, standard_streams};

/// A call whose command line is understood.
pub struct Session<'a> {
    /// The parsed call.
    pub request: Request,
    call: Call<'a>,
    key_parts: KeyParts,
    keys: KeyVariants,
}

/// Other machines that may have results of a build, or run its steps.
struct OtherMachines<'a> {
    upstream: Option<&'a dyn Upstream>,
    executor: Option<&'a dyn Executor>,
}

impl<'a> Session<'a> {
    /// Parses a call. Paths below the folders of `base_dirs` do not count by their full names.
    ///
    /// # Errors
    /// Why plain nvcc has to carry out the call.
    pub fn prepare(
        nvcc: &Path,
        args: &[OsString],
        base_dirs: &BaseDirs,
        call: Call<'a>,
    ) -> Result<Self, Bypass> {
        let context = call.context;
        if let Some(reason) = unusable_directory(&context.directory) {
            return Err(Unsupported::new(reason, "").into());
        }
        if standard_streams::any_was_closed() {
            return Err(Unsupported::new(standard_streams::CLOSED, "").into());
        }
        if let Some(name) = repeated_variable(&context.environment) {
            return Err(Unsupported::new(REPEATED_VARIABLE, name.to_string_lossy()).into());
        }
        if resources::has_little_memory() {
            return Err(Unsupported::new(resources::LITTLE_MEMORY, "").into());
        }
        let request = Request::new(
            nvcc.to_owned(),
            args,
            context.directory.clone(),
            context.environment.clone(),
            base_dirs,
        )?;
        if let Some(reason) = request.invocation.plain {
            return Err(Bypass::Plain(reason));
        }
        if let Some(input) = missing_input(&request) {
            return Err(Unsupported::new(MISSING_INPUT, input).into());
        }
        if let Some(input) = irregular_input(&request, args) {
            return Err(Unsupported::new("an input is not a regular file", input).into());
        }
        let key_parts = request.key_parts();
        let keys = request.keys(&key_parts);
        Ok(Self {
            request,
            call,
            key_parts,
            keys,
        })
    }

    /// Answers the call from a cache, or builds it. Calls `listen` with the finished build and the time that it took, before
    /// the intermediate files are removed. Gives nvcc's exit code.
    ///
    /// # Errors
    /// Why plain nvcc has to carry out the call. Nothing was shown or put in place then.
    pub fn complete(
        &self,
        call_options: &CallOptions<'_>,
        listen: impl FnOnce(&Request, (&Built, Duration)),
    ) -> Result<i32, Bypass> {
        let (config, store) = (self.call.config(), self.call.store());
        let looks_up = call_options.looks_up && !config.recache.value;
        let lookup = CallLookup::new(self.call, &self.request, &self.keys);
        let difference = match lookup.look_up(looks_up) {
            DirectLookup::Hit(micros) => return Ok(self.hit(micros)),
            DirectLookup::Miss(difference) => difference,
            DirectLookup::Bypass(why) => return Err(why.into()),
        };
        self.refuse_known(call_options)?;
        let interrupt = Interrupt::watch(config.stall_timeout.value);
        let scratch = match lookup.wait_for_same_call(looks_up, &interrupt)? {
            AfterWait::Hit(micros) => return Ok(self.hit(micros)),
            AfterWait::Build(scratch) => scratch,
        };
        let cluster = self.cluster_address(call_options);
        let remote = Arc::new(self.remote_program(cluster.as_ref()));
        let shared = self.shared_caches(&remote);
        let upload = || {
            if shared.as_ref().is_some_and(SharedCaches::needs_uploader) {
                history::upload_in_background(&self.call.context.ourselves[0]);
            }
        };
        if looks_up
            && let (Some(shared), Some(store)) = (&shared, store)
            && lookup.fetch(shared, store)
            && let DirectLookup::Hit(micros) = lookup.look_up(true)
        {
            drop(scratch);
            upload();
            return Ok(self.hit(micros));
        }
        let executor = cluster.and_then(|named| Cluster::new(&named, &remote, config, store));
        let machines = OtherMachines {
            upstream: shared.as_ref().map(|shared| shared as &dyn Upstream),
            executor: executor.as_ref().map(|cluster| cluster as &dyn Executor),
        };
        let built = self.build(
            call_options,
            &machines,
            &lookup,
            (&scratch, &interrupt),
            listen,
        );
        drop(scratch);
        self.note_side_files(&built);
        let built = built?;
        log_build(self.call.log, &built);
        let recorder = self.call.recorder;
        recorder.built(&self.request, &self.key_parts, &built, difference.as_ref());
        if let Some(store) = store.filter(|_| self.writes_cache()) {
            self.start_cleanup(store);
        }
        upload();
        Ok(built.code)
    }

    /// Builds the result in `scratch`, and calls `listen` with it.
    fn build(
        &self,
        call_options: &CallOptions<'_>,
        machines: &OtherMachines<'_>,
        lookup: &CallLookup<'_>,
        (scratch, interrupt): (&Scratch, &Interrupt),
        listen: impl FnOnce(&Request, (&Built, Duration)),
    ) -> Result<Built, Unsupported> {
        let (config, store) = (self.call.config(), self.call.store());
        let call_id = self.call.recorder.call_id;
        let admission = resources::admission(config, call_id, &self.request, store, self.call.log);
        let options = BuildOptions {
            progress: call_options.progress,
            store,
            reads_cache: !config.recache.value && !call_options.wants_all_files(),
            writes_cache: self.writes_cache(),
            upstream: machines.upstream,
            keys: &self.keys,
            content_keys: lookup.content_keys(),
            jobs: call_options
                .jobs
                .unwrap_or_else(|| config.job_limit())
                .get(),
            admission: &admission,
            executor: machines.executor,
            sequential: call_options.sequential || self.changes_other_files(),
            finishes_phase: call_options.finishes_phase(&self.request),
            faithful: call_options.faithful,
            early_cutoff: config.early_cutoff.value,
            save: call_options.save,
            listener: call_options.listener,
            started: self.call.context.started,
            ourselves: &self.call.context.ourselves,
        };
        let clock = Instant::now();
        let built = build::build(&self.request, &options, scratch, interrupt)?;
        listen(&self.request, (&built, clock.elapsed()));
        Ok(built)
    }

    /// Whether results of this call are stored.
    fn writes_cache(&self) -> bool {
        self.call.store().is_some() && !self.call.config().readonly.value
    }

    /// The cluster that may run steps of this call.
    fn cluster_address(&self, call_options: &CallOptions<'_>) -> Option<ClusterAddress> {
        let may_use = call_options.may_use_cluster && !call_options.wants_all_files();
        may_use
            .then(|| ClusterAddress::from_config(self.call.config()))
            .flatten()
    }

    fn hit(&self, micros: u64) -> i32 {
        self.call.recorder.direct_hit(&self.request, micros);
        self.call.log.line(|| "direct hit".to_owned());
        0
    }

    /// Fails if the last build of this call was given up for a reason that still holds: it would be given up again.
    fn refuse_known(&self, call_options: &CallOptions<'_>) -> Result<(), Unsupported> {
        let store = self.call.store();
        let Some(store) = store.filter(|_| !self.call.config().recache.value) else {
            return Ok(());
        };
        let (request, call) = (&self.request, self.keys.base());
        let reason = if history::used_side_files(store, request, call) {
            build::USES_SIDE_FILES
        } else if call_options.finishes_phase(request)
            && history::changed_other_files(store, request, call)
        {
            build::CHANGES_OTHER_FILES
        } else {
            return Ok(());
        };
        Err(Unsupported::new(reason, "an earlier call did"))
    }

    /// Whether a command of this call changed a file besides its outputs, when the call was last built. Then the commands run
    /// in nvcc's order from the beginning.
    fn changes_other_files(&self) -> bool {
        let noted = |store| history::changed_other_files(store, &self.request, self.keys.base());
        !self.request.invocation.threads && self.call.store().is_some_and(noted)
    }

    /// Notes for later calls what commands did besides writing their outputs.
    fn note_side_files(&self, built: &Result<Built, Unsupported>) {
        let Some(store) = self.call.store() else {
            return;
        };
        let (request, call) = (&self.request, self.keys.base());
        let reason = built.as_ref().err().map(|why| why.reason);
        // A program that is not watched may change files unseen. It was ended before it started.
        let has_changed =
            |built: &Built| built.run.changed_file.is_some() || built.retried == Some(HELD);
        if reason == Some(build::USES_SIDE_FILES) {
            history::note_side_files(store, request, call);
        } else if reason == Some(build::CHANGES_OTHER_FILES)
            || built.as_ref().is_ok_and(has_changed)
        {
            history::note_changed_files(store, request, call);
        }
    }

    /// The shared caches; `None` where the call may neither read nor write them.
    fn shared_caches(&self, remote: &Arc<RemoteProgram>) -> Option<SharedCaches> {
        let config = self.call.config();
        let layers = config.layers();
        let is_used = !config.recache.value || !config.readonly.value;
        let store = self
            .call
            .store()
            .filter(|_| is_used && !layers.is_empty())?;
        Some(SharedCaches::new(Arc::clone(remote), layers, store.root()))
    }

    /// The program `warpcc-remote`, which talks to the shared caches and the cluster. It is started at the first request.
    fn remote_program(&self, cluster: Option<&ClusterAddress>) -> RemoteProgram {
        let cluster = cluster.map(|named| (named.address.to_string(), &named.auth));
        remotes::for_nvcc_call(
            &self.call.context.ourselves[0],
            &self.call.config().layers(),
            self.call.store(),
            cluster,
        )
    }

    /// Removes old scratch folders and, where the cache is too large, starts a process that shrinks it.
    fn start_cleanup(&self, store: &DiskStore) {
        scratch::sweep(&self.request.temporary());
        if store.needs_gc() {
            history::collect_in_background(&self.call.context.ourselves[0]);
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
