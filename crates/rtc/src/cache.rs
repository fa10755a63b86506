//! The cache of compiled kernels: in memory, in folders, in shared caches; each is compiled once for all callers.

mod embedded;
mod find_or_make;
mod linked;
mod many;
mod observed;
mod products;
mod why;

pub use many::{ManyOptions, Progress};
pub use why::{PartChange, Why};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use warpcc_cache::{Key, Upstream};

use crate::call_limits::CallLimits;
use crate::compiler::{Compiled, Compiler};
use crate::counts::Counts;
use crate::debug_sources;
use crate::environment::Environment;
use crate::error::Error;
use crate::found::Found;
use crate::kernel::Loaded;
use crate::keys;
use crate::linker::Linker;
use crate::memory::{Memory, Remembered, written};
use crate::option_rules::writes_a_file;
use crate::record::Recorder;
use crate::request::CompileRequest;
use crate::seen_files::SeenFiles;
use crate::settings::CacheSettings;
use crate::single_flight::Flights;
use crate::target::{RealArch, Target};
use crate::tiers::Tiers;
use crate::trace::Tracer;
use crate::usage::UsageCounter;
use crate::workers::Place;

/// What a compilation waits for before it begins.
type Admit<'a> = &'a (dyn Fn() -> Result<Turn<'a>, Error> + 'a);

/// What a compilation holds while it runs: the place where it runs, and a part of the machine.
#[derive(Default)]
struct Turn<'a> {
    place: Option<Place<'a, 'a>>,
    _claim: Option<warpcc_budget::Claim>,
}

/// An image of a kernel, and where it was found.
#[derive(Debug, Clone)]
pub struct Image {
    /// The image, its names and its log.
    pub compiled: Arc<Compiled>,
    /// Its key, the same on every machine. `None` if the included files cannot be known.
    pub key: Option<Key>,
    /// The place where it was found.
    pub found: Found,
}

/// A cache: kernels as text in, images out, each compiled once. Any number of threads may use it at once; share it in an
/// `Arc`.
#[derive(Debug)]
pub struct KernelCache {
    compiler: Compiler,
    linker: OnceLock<Result<Linker, Error>>,
    environment: Environment,
    settings: CacheSettings,
    /// The part that all kernels share: a common header, include folders, options.
    common: CompileRequest,
    tiers: Tiers,
    /// Records requests, if set.
    recorder: Option<Recorder>,
    /// Writes what came of requests to a file, if set.
    tracer: Option<Tracer>,
    memory: RwLock<Memory<CompileRequest>>,
    linked: RwLock<Memory<Key>>,
    flights: Flights<Key, (Arc<Compiled>, Found)>,
    builds: [OnceLock<Option<Vec<[u8; 32]>>>; 3],
    /// Where nvJitLink was found, which is not loaded yet.
    linker_file: OnceLock<Option<PathBuf>>,
    usage: UsageCounter,
    /// A remark about processes that compile.
    about_workers: Mutex<Option<String>>,
    pub(crate) functions: RwLock<HashMap<u64, Vec<Loaded>>>,
}

impl KernelCache {
    /// Opens a cache with the NVRTC and the settings of this process's environment.
    ///
    /// # Errors
    /// There is no NVRTC.
    pub fn new() -> Result<Self, Error> {
        let environment = Environment::of_process();
        let settings = CacheSettings::from_environment(&environment);
        let compiler = Compiler::find_for(&settings, &environment)?;
        Ok(Self::with(compiler, settings, None))
    }

    /// Opens a cache with this compiler and these settings, and with shared caches behind the folders. Shared caches need a
    /// folder that may be written to: see [`CacheSettings::open_first_written`].
    pub fn with(
        compiler: Compiler,
        settings: CacheSettings,
        upstream: Option<Arc<dyn Upstream>>,
    ) -> Self {
        let tiers = Tiers::new(
            &settings.tiers,
            &settings.packs,
            upstream,
            settings.remarks.clone(),
        );
        let environment = Environment::of_process();
        Self {
            compiler,
            linker: OnceLock::new(),
            recorder: Recorder::from_environment(&environment),
            tracer: Tracer::from_environment(&environment),
            environment,
            memory: RwLock::new(Memory::new(settings.memory)),
            linked: RwLock::new(Memory::new(settings.memory)),
            usage: UsageCounter::new(&settings),
            settings,
            common: CompileRequest::new("", "", Target::Cubin(RealArch::new(0))),
            tiers,
            flights: Flights::new(),
            builds: Default::default(),
            linker_file: OnceLock::new(),
            about_workers: Mutex::default(),
            functions: RwLock::default(),
        }
    }

    /// Adds to every kernel of [`KernelCache::get_image`]: texts before the parameters, headers, include folders,
    /// options. Name, source, name expressions and target of `common` are ignored.
    #[must_use]
    pub fn compiled_with(mut self, common: CompileRequest) -> Self {
        self.common = common;
        self
    }

    /// Uses this nvJitLink, instead of the one next to NVRTC or of the machine.
    #[must_use]
    pub fn linked_with(self, linker: Linker) -> Self {
        let linked = OnceLock::from(Ok(linker));
        Self {
            linker: linked,
            ..self
        }
    }

    /// Records every request in `file`, a manifest for `warpcc rtc warm`, instead of the file in `WARPCC_RTC_RECORD`.
    #[must_use]
    pub fn recorded_in(self, file: &Path) -> Self {
        let recorder = Some(Recorder::at(file.to_path_buf()));
        Self { recorder, ..self }
    }

    /// Writes what came of each request to `file`, a trace for ui.perfetto.dev, instead of the file in `WARPCC_RTC_TRACE`.
    #[must_use]
    pub fn traced_in(self, file: &Path) -> Self {
        let tracer = Some(Tracer::at(file.to_path_buf()));
        Self { tracer, ..self }
    }

    /// The compiler of this cache.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// The settings of this cache.
    pub fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    /// Problems so far that are not errors, and unusual settings.
    pub fn remarks(&self) -> Vec<String> {
        let mut all = self.tiers.remarks();
        let about_workers = self.about_workers.lock();
        all.extend(
            about_workers
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        );
        all
    }

    /// Whether folders, packs and shared caches are as they should be: no remark is about one.
    pub fn keeps_all(&self) -> bool {
        self.tiers.remarks().is_empty()
    }

    /// Adds a remark about a process that compiles.
    fn remark_on_workers(&self, remark: String) {
        let about_workers = self.about_workers.lock();
        // One says enough, whatever happens later.
        about_workers
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(remark);
    }

    /// How often images were found, and where.
    pub fn counts(&self) -> Counts {
        self.usage.counts()
    }

    /// The best target for a GPU of compute capability `device` (ten times major plus minor), by the settings: PTX with
    /// `CUDA_FORCE_PTX_JIT`, and never PTX with `CUDA_DISABLE_PTX_JIT`.
    ///
    /// # Errors
    /// There is no such target.
    pub fn target_for(&self, device: u32) -> Result<Target, Error> {
        let best = self.compiler.target_for(device)?;
        let best = match best {
            Target::Cubin(arch) if self.settings.force_ptx_jit => {
                Target::Ptx(crate::target::VirtualArch(arch.0))
            }
            other => other,
        };
        match best {
            Target::Ptx(_) if self.settings.disable_ptx_jit => Err(Error::invalid(
                "CUDA_DISABLE_PTX_JIT",
                format!(
                    "it is set, and NVRTC {} can make only PTX for a GPU of compute capability {}.{}",
                    self.compiler.version(),
                    device / 10,
                    device % 10
                ),
            )),
            target => Ok(target),
        }
    }

    /// The image of the kernel `name` of `source`, with `parameters` as text before it, for `target`, as MXNet's call
    /// compiles it. `name` is the name in C++, such as `scale<float>`; [`Compiled::lowered_name`] returns the name in the
    /// image.
    ///
    /// # Errors
    /// As [`KernelCache::get`].
    pub fn get_image(
        &self,
        parameters: &str,
        name: &str,
        source: &str,
        target: Target,
        limits: &CallLimits,
    ) -> Result<Image, Error> {
        self.get(&self.request(parameters, name, source, target), limits)
    }

    /// The request that [`KernelCache::get_image`] makes.
    pub fn request(
        &self,
        parameters: &str,
        name: &str,
        source: &str,
        target: Target,
    ) -> CompileRequest {
        self.common.for_kernel(parameters, name, source, target)
    }

    /// The image of `request`: from memory, from a folder, from a shared cache, or compiled now.
    ///
    /// # Errors
    /// See [`Compiler::compile`]. A text that does not compile is saved as a whole, and the error names the file. The cache
    /// itself never causes an error: see [`KernelCache::remarks`].
    pub fn get(&self, request: &CompileRequest, limits: &CallLimits) -> Result<Image, Error> {
        self.get_admitted(request, limits, &|| Ok(Turn::default()))
    }

    /// As [`KernelCache::get`]. A compilation waits for `admit` first, which gives it a part of the machine, or refuses.
    fn get_admitted(
        &self,
        request: &CompileRequest,
        limits: &CallLimits,
        admit: Admit<'_>,
    ) -> Result<Image, Error> {
        self.observed(&request.name, |key| {
            self.get_unobserved(request, limits, admit, key)
        })
    }

    /// As [`KernelCache::get_admitted`]; sets `known` to the key as soon as that is known.
    fn get_unobserved(
        &self,
        request: &CompileRequest,
        limits: &CallLimits,
        admit: Admit<'_>,
        known: &mut Option<Key>,
    ) -> Result<Image, Error> {
        let directory = working_directory(request)?;
        if let Some((compiled, key)) = self.remembered(request, &directory) {
            self.usage.count(Found::Memory);
            return Ok(Image {
                compiled,
                key,
                found: Found::Memory,
            });
        }
        request.check()?;
        if let Some(option) = request.options.iter().find(|option| writes_a_file(option)) {
            return Err(Error::invalid(
                format!("option {option}"),
                "it makes NVRTC write a file, which a cache cannot give back: use Compiler",
            ));
        }
        let mut request = request.clone();
        let asked = request.clone();
        for folder in &mut request.include_folders {
            *folder = directory.join(&*folder);
        }
        debug_sources::name_texts(&mut request, Some(&self.tiers.source_folder()));
        let seen = SeenFiles::find(&request, &directory).inspect_err(|why| {
            self.tiers
                .remark(format!("{} is not stored: {why}", request.name))
        });
        let Ok(seen) = seen else {
            // The included files cannot be known, so the image must not be stored.
            let (compiled, _) = self.compile(&request, None, limits, &mut admit()?)?;
            self.record(|recorder| recorder.program(&request));
            return Ok(Image {
                compiled: compiled.into(),
                key: None,
                found: Found::Made,
            });
        };
        let builds = self.builds_of(&request)?;
        let key = keys::of_program(&self.compiler, &builds, &request, &seen);
        *known = Some(key);
        let image = self.once(&key, &request.name, limits, || {
            // Another thread may have stored it meanwhile.
            if let Some((compiled, _)) = self.remembered(&asked, &directory) {
                return Ok((compiled, Found::Memory));
            }
            let (compiled, found) = self.find_or_make(&key, &request.name, limits, || {
                let mut turn = admit()?;
                let (compiled, is_it) = self.compile(&request, Some(&key), limits, &mut turn)?;
                Ok((compiled, is_it && seen.still_holds(&request)))
            })?;
            if found == Found::Made {
                self.note_parts(&builds, &request, &seen);
            }
            if let Some(manifest) = &seen.manifest
                && !seen.included.computed
            {
                let image = Remembered::new(&compiled, key, manifest.clone(), directory.clone());
                written(&self.memory).put(asked.clone(), image);
            }
            Ok((compiled, found))
        })?;
        self.record(|recorder| recorder.program(&request));
        Ok(image)
    }

    fn record(&self, what: impl FnOnce(&Recorder) -> Result<(), String>) {
        if let Some(Err(why)) = self.recorder.as_ref().map(what) {
            self.tiers.remark(why);
        }
    }

    /// Whether anything besides texts and options may matter for kernels of [`KernelCache::get_image`].
    pub(crate) fn knows_the_directory(&self) -> bool {
        self.common.knows_the_directory()
    }
}

/// The working directory, where the result of `request` depends on it; otherwise an empty path.
fn working_directory(request: &CompileRequest) -> Result<PathBuf, Error> {
    match request.knows_the_directory() {
        true => std::path::absolute(".").map_err(|error| Error::File {
            action: "find",
            path: ".".into(),
            problem: error.to_string(),
        }),
        false => Ok(PathBuf::new()),
    }
}
