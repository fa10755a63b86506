//! Compiles a program's text with NVRTC: no GPU, no driver, no cache.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warpcc_cache::{Hashing, KeySink};

use crate::c_text::c_text;
use crate::call_limits::CallLimits;
use crate::debug_sources;
use crate::deep_stack::on_a_deep_stack;
use crate::diagnostics::first_error;
use crate::environment::Environment;
use crate::error::{CompileFailure, Error};
use crate::includes;
use crate::job_texts::JobTexts;
use crate::nvrtc::{BundledHeaders, CompileOutput, LoadedBuild, Nvrtc, NvrtcError};
use crate::request::{CompileRequest, PrecompiledHeaders};
use crate::settings::CacheSettings;
use crate::target::Target;
use crate::version::Version;

/// The first version with a cache of its own, and with the option to switch it off.
const OWN_CACHE: Version = Version::new(12, 9);
/// The first version that precompiles headers.
const PRECOMPILES: Version = Version::new(12, 8);

/// The result of a compilation.
#[derive(Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The kind of output and its architecture.
    pub target: Target,
    /// Machine code, PTX (without a zero at its end) or LTO-IR.
    pub image: Arc<[u8]>,
    /// Each name expression and the name in the image, in the order asked for.
    pub lowered: Vec<(String, String)>,
    /// NVRTC's log: warnings.
    pub log: String,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // An image as a list of numbers is of no use.
        f.debug_struct("Compiled")
            .field("target", &self.target)
            .field("image", &format_args!("{} bytes", self.image.len()))
            .field("lowered", &self.lowered)
            .field("log", &self.log)
            .finish()
    }
}

impl Compiled {
    /// The name in the image of what the source calls `expression`.
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        let found = self.lowered.iter().find(|(asked, _)| asked == expression);
        found.map(|(_, lowered)| lowered.as_str())
    }
}

/// NVRTC, ready to compile. Cheap to clone; any number of threads may use it at once.
///
/// ```no_run
/// use warpcc_rtc::{CallLimits, CompileRequest, Compiler, Target};
///
/// let compiler = Compiler::find()?;
/// let target = Target::best_for(90, compiler.architectures()).expect("a GPU that NVRTC knows");
/// let mut request = CompileRequest::new("scale", "template<class T> __global__ void scale(T* x) { *x *= 2; }", target);
/// request.name_expressions.push("scale<float>".into());
/// let compiled = compiler.compile(&request, &CallLimits::default())?;
/// assert_eq!(compiled.lowered_name("scale<float>"), Some("_Z5scaleIfEvPT_"));
/// # Ok::<(), warpcc_rtc::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Compiler {
    nvrtc: Arc<Nvrtc>,
}

impl Compiler {
    /// Finds the NVRTC of this machine, in the places that docs/rtc.md lists.
    ///
    /// # Errors
    /// No NVRTC of 12.0 or later was found; the error lists everything that was tried.
    pub fn find() -> Result<Self, Error> {
        Self::find_with(None, &Environment::of_process())
    }

    /// Opens the NVRTC at `path`, which is the library or its folder.
    ///
    /// # Errors
    /// It does not load, or is older than 12.0.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::find_with(Some(path), &Environment::default())
    }

    /// Opens the NVRTC at `path`, or finds it through `environment`.
    ///
    /// # Errors
    /// See the other two functions.
    pub fn find_with(path: Option<&Path>, environment: &Environment) -> Result<Self, Error> {
        let nvrtc = Nvrtc::find(path, environment)?;
        Ok(Self {
            nvrtc: Arc::new(nvrtc),
        })
    }

    /// Finds NVRTC through `environment`. If a process with the first writable folder of these settings has loaded it before,
    /// it is not loaded until something has to be compiled.
    ///
    /// # Errors
    /// As [`Compiler::find`].
    pub fn find_for(settings: &CacheSettings, environment: &Environment) -> Result<Self, Error> {
        let store = settings.open_first_written();
        let deferred = store.ok();
        let deferred = deferred.and_then(|store| Nvrtc::deferred(environment, &store));
        match deferred {
            Some(nvrtc) => Ok(Self {
                nvrtc: Arc::new(nvrtc),
            }),
            None => Self::find_with(None, environment),
        }
    }

    /// NVRTC's version.
    pub fn version(&self) -> Version {
        self.nvrtc.version()
    }

    /// The architectures that it supports, ten times major plus minor, oldest first.
    pub fn architectures(&self) -> &[u32] {
        self.nvrtc.architectures()
    }

    /// The library's file; empty if the system does not report it.
    pub fn library(&self) -> &Path {
        self.nvrtc.path()
    }

    /// Whether a running compilation can be stopped.
    pub fn can_be_stopped(&self) -> bool {
        self.nvrtc.can_be_stopped()
    }

    /// The target that is best for a GPU of compute capability `device` (ten times major plus minor).
    ///
    /// # Errors
    /// The GPU is older than all that this NVRTC supports.
    pub fn target_for(&self, device: u32) -> Result<Target, Error> {
        Target::best_for(device, self.architectures()).ok_or_else(|| Error::Unsupported {
            what: format!(
                "a GPU of compute capability {}.{}",
                device / 10,
                device % 10
            ),
            needs: "an older NVRTC".to_owned(),
            library: "NVRTC".to_owned(),
            version: format!(
                "{} and compiles for {} and newer",
                self.version(),
                self.architectures().first().copied().unwrap_or(0)
            ),
        })
    }

    /// The headers that this NVRTC carries: none before 13.3, or if its builtins have none.
    pub fn bundled_headers(&self) -> Option<BundledHeaders> {
        self.nvrtc.bundled_headers()
    }

    /// Writes those headers into `folder`, unless they exist, and returns the include folders that a request needs for them.
    /// From then on they are included files like others: read, hashed and checked again. Several processes may do this at
    /// once.
    ///
    /// # Errors
    /// This NVRTC has none ([`Error::Unsupported`]), or the folder cannot be written to.
    pub fn install_bundled_headers(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        if self.bundled_headers().is_none() {
            return Err(Error::Unsupported {
                what: "headers that NVRTC carries with it".to_owned(),
                needs: "13.3 or newer, with its libnvrtc-builtins next to it".to_owned(),
                library: "NVRTC".to_owned(),
                version: self.version().to_string(),
            });
        }
        let path = c_text("folder", folder.as_os_str().as_bytes())?;
        let named = |fault| match fault {
            NvrtcError::Call { code, .. } => Error::File {
                action: "write NVRTC's headers into",
                path: folder.to_path_buf(),
                problem: code,
            },
            // These two concern compilations only.
            NvrtcError::Stopped | NvrtcError::Refused { .. } => Error::Call {
                call: "nvrtcInstallBundledHeaders",
                code: "an unexpected answer".to_owned(),
            },
        };
        self.nvrtc.install_headers(&path).map_err(named)?;
        Ok(vec![folder.to_path_buf(), folder.join("cccl")])
    }

    /// Compiles.
    ///
    /// # Errors
    /// The request is invalid ([`Error::Invalid`]), the text does not compile ([`Error::Compile`]), a limit was reached, or
    /// NVRTC itself failed.
    pub fn compile(
        &self,
        request: &CompileRequest,
        limits: &CallLimits,
    ) -> Result<Compiled, Error> {
        self.compile_in(request, limits, |_| None)
    }

    /// As [`Compiler::compile`]. `elsewhere` is asked first: it runs the texts in another process, or returns `None`, and
    /// then NVRTC runs in this one.
    pub(crate) fn compile_in(
        &self,
        request: &CompileRequest,
        limits: &CallLimits,
        elsewhere: impl FnOnce(&JobTexts) -> Option<Result<CompileOutput, NvrtcError>>,
    ) -> Result<Compiled, Error> {
        request.check()?;
        request.can_be_compiled_alone()?;
        limits.check(&request.name)?;
        let mut request = request.clone();
        debug_sources::name_texts(&mut request, None);
        let options = self.options(&request);
        request.unpack_bundles()?;
        let request = &request;
        let texts = JobTexts::new_checked(request, &options)?;
        let ran = elsewhere(&texts).unwrap_or_else(|| {
            let (nvrtc, its_limits) = (self.nvrtc.clone(), limits.clone());
            let work = move || {
                let stop = || its_limits.passed("").is_err();
                nvrtc.run(&texts.job(its_limits.any().then_some(&stop)))
            };
            on_a_deep_stack(work, limits)
        });
        let made = ran.map_err(|fault| self.failure(fault, request, limits, &options))?;
        if made.image.is_empty() {
            return Err(Error::Call {
                call: "nvrtcCompileProgram",
                code: format!("it made nothing for {} and gave no error", request.target),
            });
        }
        let asked = request.name_expressions.iter().map(ToString::to_string);
        Ok(Compiled {
            target: request.target,
            image: made.image.into(),
            lowered: asked.zip(made.lowered).collect(),
            log: made.log,
        })
    }

    /// The build of NVRTC that this process has loaded; `None` if that cannot be known.
    pub(crate) fn loaded(&self) -> Option<&LoadedBuild> {
        self.nvrtc.loaded()
    }

    /// The files whose content decides the result of a compilation.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.nvrtc.files()
    }

    /// All options for NVRTC, in order. Keys are made of these.
    pub(crate) fn options(&self, request: &CompileRequest) -> Vec<Vec<u8>> {
        let mut options: Vec<Vec<u8>> = request
            .target
            .options()
            .into_iter()
            .map(String::into_bytes)
            .collect();
        let mut add = |text: &str| options.push(text.as_bytes().to_vec());
        if self.version() >= OWN_CACHE {
            // NVRTC's own cache is switched off: one cache is enough.
            add("--no-cache");
        }
        if let Some(content) = self.precompiled(request) {
            add("--pch");
            add(&format!("-DWARPCC_PRECOMPILED={content}"));
        }
        if !request.opens_files() {
            // Without this option NVRTC searches the working directory for headers that are not given as text.
            add("--no-source-include");
        }
        for folder in &request.include_folders {
            let mut option = b"--include-path=".to_vec();
            option.extend_from_slice(folder.as_os_str().as_bytes());
            options.push(option);
        }
        options.extend(
            request
                .options
                .iter()
                .map(|option| option.as_bytes().to_vec()),
        );
        options
    }

    /// A hash of the headers that NVRTC would precompile; `None` if it should not, or if their content cannot be known.
    ///
    /// NVRTC uses a precompiled header again if includes and options are the same. It does not notice that a header given as
    /// text is another one, or that a file was edited within the second, and compiles the old one (12.9 and 13.5, tried). So
    /// the hash of the content is passed as an option.
    fn precompiled(&self, request: &CompileRequest) -> Option<String> {
        let automatic = request.precompiled_headers == PrecompiledHeaders::Automatic;
        if !automatic || self.version() < PRECOMPILES {
            return None;
        }
        let mut hashing = Hashing::new("precompiled headers 1");
        for text in request.preamble.iter().chain(&request.headers) {
            hashing.part("name", text.name.as_bytes());
            hashing.part("text", text.text.as_bytes());
        }
        let directory = std::path::absolute(".").ok()?;
        for bundle in &request.bundles {
            hashing.part("bundle", bundle.digest());
        }
        for (name, content) in includes::find(request, &directory).ok()?.files {
            hashing.part("file name", name.as_bytes());
            hashing.part("file", &content);
        }
        Some(format!("0x{}", &hashing.finish().hex()[..16]))
    }

    fn failure(
        &self,
        fault: NvrtcError,
        request: &CompileRequest,
        limits: &CallLimits,
        options: &[Vec<u8>],
    ) -> Error {
        match fault {
            NvrtcError::Stopped => match limits.passed(&request.name) {
                Err(error) => error,
                // Time has passed since the check.
                Ok(()) => Error::Cancelled {
                    what: request.name.to_string(),
                },
            },
            NvrtcError::Call { call, code } => Error::Call { call, code },
            NvrtcError::Refused { code, log } => Error::Compile(Box::new(CompileFailure {
                name: request.name.to_string(),
                target: request.target.to_string(),
                nvrtc: self.version().to_string(),
                code,
                options: options
                    .iter()
                    .map(|option| String::from_utf8_lossy(option).into_owned())
                    .collect(),
                place: first_error(&log, |name| request.text_by(name)),
                log: request.log_for_people(&log),
                saved: None,
            })),
        }
    }
}
