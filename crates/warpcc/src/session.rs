//! Carries out one call of nvcc: parses it, looks it up, builds it after a miss, and records it.
//!
//! The launcher, `warpcc run` and `warpcc explain` all use this. They differ in their [`CallOptions`] and their listeners.

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
use crate::cluster::{Cluster, ClusterAddress};
use crate::content_key::ContentKey;
use crate::direct::DirectLookup;
use crate::log::Log;
use crate::process_context::ProcessContext;
use crate::progress::Progress;
use crate::request::Request;
use crate::scratch::{self, NameUse, Scratch, ScratchOptions};
use crate::signals::Interrupt;
use crate::{direct, history, remotes, resources, standard_streams};

/// The surroundings of a call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The directory and the environment of this process.
    pub context: &'a ProcessContext,
    /// The cache, the settings, and the recorder of the call.
    pub recorder: &'a CallRecorder<'a>,
    /// The log.
    pub log: &'a Log,
}

/// A call whose command line is understood.
pub struct Session<'a> {
    /// The parsed call.
    pub request: Request,
    call: Call<'a>,
    key_parts: KeyParts,
    keys: KeyVariants,
    /// The content keys. They are computed only after the first miss, because they need the source's content.
    content_keys: OnceCell<Vec<ContentKey>>,
}

/// What a miss does after it has waited for other processes with the same call.
enum AfterWait {
    /// Another process has stored the result, which took this many microseconds of processor time to make.
    Hit(u64),
    /// This process has to build the result, in this scratch folder.
    Build(Scratch),
}

/// How a call is carried out.
pub struct CallOptions<'a> {
    /// Whether the call may be a direct hit.
    pub looks_up: bool,
    /// Whether other machines may run steps.
    pub may_use_cluster: bool,
    /// The most tasks at a time; `None` for the number of the settings.
    pub jobs: Option<NonZeroUsize>,
    /// Whether commands run one at a time, in nvcc's order.
    pub sequential: bool,
    /// Whether exactly nvcc's commands run, none of them changed.
    pub faithful: bool,
    /// The folder to copy each command's files to.
    pub save: Option<&'a Path>,
    /// Is called as soon as a command has ended.
    pub listener: Option<&'a dyn BuildListener>,
    /// The progress line on the terminal.
    pub progress: Option<&'a Progress>,
}

impl CallOptions<'_> {
    /// The options of the launcher. The build system uses the terminal, so there is no progress line.
    pub fn for_launcher() -> Self {
        Self {
            looks_up: true,
            may_use_cluster: true,
            jobs: None,
            sequential: false,
            faithful: false,
            save: None,
            listener: None,
            progress: None,
        }
    }
}

/// An input that is not a regular file, such as `/dev/stdin`, or a pipe in an option, such as the shell's `-include <(…)`.
/// Such a file can be read only once, and which step reads it depends on the order of the steps.
fn irregular_input(request: &Request, args: &[OsString]) -> Option<String> {
    let kind = |path: &str| {
        let found = std::fs::metadata(request.absolute(path));
        found.ok().map(|found| found.file_type())
    };
    let inputs = request.invocation.inputs.iter();
    let mut irregular = inputs.filter(|input| kind(input).is_some_and(|kind| !kind.is_file()));
    let words = args.iter().filter_map(|word| word.to_str());
    let values = words.map(|word| word.split_once('=').map_or(word, |(_, value)| value));
    let outputs = request.invocation.outputs();
    let is_output = |word: &str| outputs.iter().any(|output| output.path == *word);
    let is_pipe = |word: &&str| kind(word).is_some_and(|kind| kind.is_fifo()) && !is_output(word);
    irregular.next().cloned().or_else(|| {
        values
            .filter(|word| !word.starts_with('-'))
            .find(is_pipe)
            .map(str::to_owned)
    })
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
        if context.directory.as_os_str().is_empty() {
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
            context.directory.clone(),
            context.environment.clone(),
            base_dirs,
        )?;
        if let Some(reason) = request.invocation.plain {
            return Err(Bypass::Plain(reason));
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
            content_keys: OnceCell::new(),
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
        let Call {
            context,
            recorder,
            log,
        } = self.call;
        let (config, store) = (recorder.config, recorder.store);
        let looks_up = call_options.looks_up && !config.recache.value;
        let difference = match self.look_up(looks_up) {
            DirectLookup::Hit(micros) => return Ok(self.hit(micros)),
            DirectLookup::Miss(difference) => difference,
            DirectLookup::Bypass(why) => return Err(why.into()),
        };
        self.refuse_known_side_files()?;
        let interrupt = Interrupt::watch(config.stall_timeout.value);
        let scratch = match self.wait_for_same_call(looks_up, &interrupt)? {
            AfterWait::Hit(micros) => return Ok(self.hit(micros)),
            AfterWait::Build(scratch) => scratch,
        };
        // A step that hits or runs on the cluster leaves only those files that other steps read.
        let wants_all_files = call_options.save.is_some();
        let may_use_cluster = call_options.may_use_cluster && !wants_all_files;
        let cluster = may_use_cluster
            .then(|| ClusterAddress::from_config(config))
            .flatten();
        let remote = Arc::new(self.remote_program(cluster.as_ref()));
        let shared = self.shared_caches(&remote);
        let upload = || {
            if shared.as_ref().is_some_and(SharedCaches::needs_uploader) {
                history::upload_in_background(&context.ourselves[0]);
            }
        };
        if looks_up
            && let (Some(shared), Some(store)) = (&shared, store)
            && self.fetch(shared, store)
            && let DirectLookup::Hit(micros) = self.look_up(true)
        {
            drop(scratch);
            upload();
            return Ok(self.hit(micros));
        }
        let admission = resources::admission(config, recorder.call_id, &self.request, store, log);
        let executor = cluster.and_then(|named| Cluster::new(&named, &remote, config, store));
        let options = BuildOptions {
            progress: call_options.progress,
            store,
            reads_cache: !config.recache.value && !wants_all_files,
            writes_cache: store.is_some() && !config.readonly.value,
            upstream: shared.as_ref().map(|shared| shared as &dyn Upstream),
            keys: &self.keys,
            content_keys: self.content_keys(),
            jobs: call_options
                .jobs
                .unwrap_or_else(|| config.job_limit())
                .get(),
            admission: &admission,
            executor: executor.as_ref().map(|cluster| cluster as &dyn Executor),
            sequential: call_options.sequential,
            faithful: call_options.faithful,
            early_cutoff: config.early_cutoff.value,
            save: call_options.save,
            listener: call_options.listener,
            started: context.started,
            ourselves: &context.ourselves,
        };
        let clock = Instant::now();
        let built = build::build(&self.request, &options, &scratch, &interrupt);
        if let Ok(built) = &built {
            listen(&self.request, (built, clock.elapsed()));
        }
        drop(scratch);
        self.note_side_files(&built);
        let built = built?;
        log_build(log, &built);
        recorder.built(&self.request, &self.key_parts, &built, difference.as_ref());
        if let Some(store) = store.filter(|_| options.writes_cache) {
            self.start_cleanup(store);
        }
        upload();
        Ok(built.code)
    }

    /// Fails if the last build of this call was given up because a tool used side files: it would be given up again.
    fn refuse_known_side_files(&self) -> Result<(), Unsupported> {
        let CallRecorder { config, store, .. } = self.call.recorder;
        match store.filter(|_| !config.recache.value) {
            Some(store) if history::used_side_files(store, &self.request, self.keys.base()) => Err(
                Unsupported::new(build::USES_SIDE_FILES, "an earlier call did"),
            ),
            _ => Ok(()),
        }
    }

    /// Notes for later calls that a build was given up because a tool used side files, or that it wrote a file in another
    /// order than nvcc perhaps.
    fn note_side_files(&self, built: &Result<Built, Unsupported>) {
        let uses_side_files = match built {
            Ok(built) => built.run.shared_file.is_some(),
            Err(why) => why.reason == build::USES_SIDE_FILES,
        };
        if let Some(store) = self.call.recorder.store.filter(|_| uses_side_files) {
            history::note_side_files(store, &self.request, self.keys.base());
        }
    }

    /// The shared caches; `None` where the call may neither read nor write them.
    fn shared_caches(&self, remote: &Arc<RemoteProgram>) -> Option<SharedCaches> {
        let CallRecorder { config, store, .. } = self.call.recorder;
        let layers = config.layers();
        let is_used = !config.recache.value || !config.readonly.value;
        let store = store.filter(|_| is_used && !layers.is_empty())?;
        Some(SharedCaches::new(Arc::clone(remote), layers, store.root()))
    }

    /// The program `warpcc-remote`, which talks to the shared caches and the cluster. It is started at the first request.
    fn remote_program(&self, cluster: Option<&ClusterAddress>) -> RemoteProgram {
        let Call {
            context, recorder, ..
        } = self.call;
        let cluster = cluster.map(|named| (named.address.to_string(), &named.auth));
        remotes::for_nvcc_call(
            &context.ourselves[0],
            &recorder.config.layers(),
            recorder.store,
            cluster,
        )
    }

    /// The call's content keys; empty without a cache.
    fn content_keys(&self) -> &[ContentKey] {
        self.content_keys
            .get_or_init(|| match self.call.recorder.store {
                Some(_) => ContentKey::all_of(&self.request),
                None => Vec::new(),
            })
    }

    /// Looks the call up in the cache on this disk, first under its direct key and then under its content keys.
    fn look_up(&self, looks_up: bool) -> DirectLookup {
        let Some(store) = self.call.recorder.store.filter(|_| looks_up) else {
            return DirectLookup::Miss(None);
        };
        let direct = self.look_up_as(store, &self.request, &self.keys);
        if !matches!(direct, DirectLookup::Miss(_)) {
            return direct;
        }
        for content_key in self.content_keys() {
            if let DirectLookup::Hit(micros) =
                self.look_up_as(store, &content_key.request, &content_key.keys)
            {
                self.call.log.line(|| {
                    "made by a call that compiled the same source in another folder".to_owned()
                });
                return DirectLookup::Hit(micros);
            }
        }
        direct
    }

    /// Asks the shared caches for the direct key and the content keys, all at once. True if a look-up on disk may hit now.
    fn fetch(&self, shared: &SharedCaches, store: &DiskStore) -> bool {
        let mut candidates = vec![(&self.request, &self.keys)];
        candidates.extend(
            self.content_keys()
                .iter()
                .map(|content_key| (&content_key.request, &content_key.keys)),
        );
        direct::fetch(shared, store, &candidates)
    }

    fn look_up_as(&self, store: &DiskStore, request: &Request, keys: &KeyVariants) -> DirectLookup {
        let found = direct::look_up(store, request, keys);
        let log = self.call.log;
        match &found {
            Ok(DirectLookup::Miss(Some(difference))) => {
                log.line(|| format!("no direct hit: {} differs", difference.path().display()));
            }
            Ok(_) => {}
            Err(error) => log.line(|| format!("direct hit not usable: {error}")),
        }
        found.unwrap_or(DirectLookup::Miss(None))
    }

    fn hit(&self, micros: u64) -> i32 {
        self.call.recorder.direct_hit(&self.request, micros);
        self.call.log.line(|| "direct hit".to_owned());
        0
    }

    /// Waits for another process that builds the same call, and looks the call up once more. After a miss, takes the scratch
    /// folder to build in.
    ///
    /// Calls with the same content key wait for the first one of them. When it ends, the others look its result up. If it
    /// could not be shared, they all build at the same time. They do not wait if the last call with these options could not
    /// share its result.
    fn wait_for_same_call(
        &self,
        looks_up: bool,
        interrupt: &Interrupt,
    ) -> Result<AfterWait, Unsupported> {
        let own = self.keys.base();
        let store = self.call.recorder.store.filter(|_| looks_up);
        let shares =
            |content_key: &&ContentKey| store.is_some_and(|store| content_key.may_share(store));
        let shared = self.content_keys().iter().find(shares);
        if let Some(shared) = shared.map(|content_key| content_key.keys.base()) {
            let (scratch, waited) = self.open_scratch(shared, interrupt)?;
            if !waited {
                return Ok(AfterWait::Build(scratch));
            }
            if let DirectLookup::Hit(micros) = self.look_up(looks_up) {
                return Ok(AfterWait::Hit(micros));
            }
        }
        let (scratch, waited) = self.open_scratch(own, interrupt)?;
        match self.look_up(looks_up && waited) {
            DirectLookup::Hit(micros) => Ok(AfterWait::Hit(micros)),
            _ => Ok(AfterWait::Build(scratch)),
        }
    }

    /// The scratch folder of this name, and whether this process waited for another one that used it.
    fn open_scratch(
        &self,
        name: Key,
        interrupt: &Interrupt,
    ) -> Result<(Scratch, bool), Unsupported> {
        let options = ScratchOptions {
            temporary: &self.request.temporary(),
            name: &name.hex()[..16],
            name_use: NameUse::with_debug(self.request.invocation.debug),
        };
        let opened = Scratch::open(&options, &interrupt.scratch, self.call.log);
        let advice = match &opened {
            Ok((scratch, _)) => scratch.advice(),
            Err(error) => error.advice(),
        };
        if let Some(advice) = advice {
            self.call.recorder.warn_once(&advice);
        }
        opened.map_err(|error| Unsupported::new(error.reason(), error.to_string()))
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
