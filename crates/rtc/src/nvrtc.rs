//! NVRTC, loaded at run time: one program in, one image out.
//!
//! cudarc has NVRTC too, but not the calls of 12.8 (a callback that stops a compilation), and it panics if the library is
//! missing. So this module has all of NVRTC that is used here.
#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each call gives the types that NVIDIA's \
              nvrtc.h declares"
)]

mod deferred;
mod functions;
mod program;

use std::ffi::{CStr, c_char, c_uint};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use libloading::os::unix::Library;

use crate::environment::Environment;
use crate::error::LibraryError;
use crate::ffi::{self, function};
use crate::float_environment::AsInANewProcess;
use crate::library::{self, LibraryNames};
use crate::version::{OLDEST, Version};

pub(crate) use functions::NvrtcError;
use functions::{CreateProgram, Functions, RawHeaders};
pub(crate) use program::{CompileJob, CompileOutput, Take};

const WANTED: LibraryNames = LibraryNames {
    name: "NVRTC (libnvrtc.so)",
    file: "libnvrtc.so",
    variable: crate::environment::NVRTC,
    wheels: &["cu13/lib", "cuda_nvrtc/lib"],
    advice: "install it (`pip install nvidia-cuda-nvrtc`, or a CUDA toolkit of 12.0 or later), or name it in \
             WARPCC_NVRTC",
};

/// The headers of a toolkit and of CCCL that NVRTC carries since 13.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundledHeaders {
    /// The version of the toolkit.
    pub version: Version,
    /// The number of files.
    pub files: u32,
    /// The approximate size of the files when they are written.
    pub bytes: u64,
}

/// Which build of NVRTC a process has loaded: the files, and what `stat` said of them then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadedBuild {
    pub version: Version,
    pub library: PathBuf,
    /// For the library and its builtins: device, inode, size, and time of the last change.
    pub files: Vec<[u64; 5]>,
}

impl LoadedBuild {
    fn find(version: Version, library: &Path, builtins: Option<&Path>) -> Option<Self> {
        // Without the builtins next to it, it is not known which ones NVRTC opens.
        let files = [library, builtins?].into_iter().map(|path| {
            let found = std::fs::metadata(path).ok()?;
            let changed = [found.mtime(), found.mtime_nsec()].map(i64::cast_unsigned);
            Some([
                found.dev(),
                found.ino(),
                found.size(),
                changed[0],
                changed[1],
            ])
        });
        Some(Self {
            version,
            library: library.to_path_buf(),
            files: files.collect::<Option<_>>()?,
        })
    }
}

/// NVRTC, which is loaded at once or when it is first needed, and then until the process ends. Any number of threads may use
/// it.
#[derive(Debug)]
pub struct Nvrtc {
    facts: Facts,
    functions: OnceLock<Result<Functions, LibraryError>>,
}

/// What is known of an NVRTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub version: Version,
    pub architectures: Vec<u32>,
    pub path: PathBuf,
    /// The device library that NVRTC opens when it compiles, if it is next to NVRTC.
    pub builtins: Option<PathBuf>,
    pub loaded: Option<LoadedBuild>,
}

impl Nvrtc {
    /// Finds and loads NVRTC, in the order that `library.rs` and docs/rtc.md describe.
    ///
    /// # Errors
    /// No NVRTC of 12.0 or newer was found that loads; the error has everything that was tried.
    pub fn find(explicit: Option<&Path>, environment: &Environment) -> Result<Self, LibraryError> {
        library::find(&WANTED, explicit, None, environment, Self::load)
    }

    fn load(library: &'static Library) -> Result<Self, String> {
        // SAFETY: it is the type that nvrtc.h declares.
        let create: CreateProgram = unsafe { function(library, "nvrtcCreateProgram") }?;
        let path = library::file_at(create as usize).unwrap_or_default();
        // SAFETY: it takes two numbers.
        let version = unsafe { ffi::version(library, "nvrtcVersion") }
            .map_err(|error| format!("{}: {error}", path.display()))?;
        if version < OLDEST {
            return Err(format!(
                "{} is {version}, and {OLDEST} or newer is needed",
                path.display()
            ));
        }
        let functions = Functions::load(library)?;
        let architectures = functions::architectures(library)?;
        // The wheels of 13.0 and before search for it only with the dynamic linker.
        let builtins = path.with_file_name(format!("libnvrtc-builtins.so.{version}"));
        let builtins = library::load_ahead(&builtins).then_some(builtins);
        let loaded = LoadedBuild::find(version, &path, builtins.as_deref());
        let facts = Facts {
            version,
            architectures,
            path,
            builtins,
            loaded,
        };
        Ok(Self {
            facts,
            functions: OnceLock::from(Ok(functions)),
        })
    }

    /// Its functions; loads it if that has not been done.
    fn functions(&self) -> Result<&Functions, NvrtcError> {
        let functions = self.functions.get_or_init(|| self.facts.load());
        functions.as_ref().map_err(|error| NvrtcError::Call {
            call: "loading NVRTC",
            code: error.to_string(),
        })
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.facts.version
    }

    /// The architectures it compiles for, ten times major plus minor, oldest first.
    pub fn architectures(&self) -> &[u32] {
        &self.facts.architectures
    }

    /// The library's file, as the kernel names it; empty if the kernel does not.
    pub fn path(&self) -> &Path {
        &self.facts.path
    }

    /// The build that this process has loaded; `None` if that cannot be known.
    pub(crate) fn loaded(&self) -> Option<&LoadedBuild> {
        self.facts.loaded.as_ref()
    }

    /// The files whose content decides the result of a compilation.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let library = Some(self.facts.path.as_path()).filter(|path| !path.as_os_str().is_empty());
        library.into_iter().chain(self.facts.builtins.as_deref())
    }

    /// The headers that NVRTC carries; none before 13.3, or if its builtins have none.
    pub(crate) fn bundled_headers(&self) -> Option<BundledHeaders> {
        let (info, _) = self.functions().ok()?.headers?;
        let mut raw = RawHeaders::default();
        let mut why: *const c_char = ptr::null();
        // SAFETY: a live record of the layout in nvrtc.h, and a live pointer.
        let code = unsafe { info(&raw mut raw, &raw mut why) };
        (code == 0 && raw.available != 0).then(|| BundledHeaders {
            version: Version::new(functions::small(raw.major), functions::small(raw.minor)),
            files: raw.files,
            bytes: raw.uncompressed_size as u64,
        })
    }

    pub(crate) fn run(&self, job: &CompileJob<'_>) -> Result<CompileOutput, NvrtcError> {
        let functions = self.functions()?;
        let _usual = AsInANewProcess::begin();
        program::compile(functions, job)
    }

    /// Writes the headers into a folder, unless they exist; NVRTC makes sure that several processes can do so at once.
    pub(crate) fn install_headers(&self, folder: &CStr) -> Result<(), NvrtcError> {
        /// `NVRTC_INSTALL_HEADERS_SKIP_IF_EXISTS` of nvrtc.h.
        const SKIP_IF_THERE: c_uint = 0;
        let call = "nvrtcInstallBundledHeaders";
        let functions = self.functions()?;
        let Some((_, install)) = functions.headers else {
            let code = "this version has none".to_owned();
            return Err(NvrtcError::Call { call, code });
        };
        let mut why: *const c_char = ptr::null();
        // SAFETY: a text that ends with a zero, and a live pointer.
        let code = unsafe { install(folder.as_ptr(), SKIP_IF_THERE, &raw mut why) };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: null, or NVRTC's text, which stays until this thread calls again.
        let why = (!why.is_null()).then(|| unsafe { CStr::from_ptr(why) }.to_string_lossy());
        let name = functions.name_of(code);
        let code = why.map_or_else(|| name.clone(), |why| format!("{name}: {why}"));
        Err(NvrtcError::Call { call, code })
    }

    /// Whether a running compilation can be stopped (12.8).
    pub fn can_be_stopped(&self) -> bool {
        self.functions()
            .is_ok_and(|functions| functions.set_flow.is_some())
    }
}
