//! nvJitLink's own functions, loaded at run time: images in, one cubin out. cudarc lacks them.
//!
//! Until 12.2 the library has its functions only under names with its version (`__nvJitLinkCreate_12_0`).
#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each call below gives the types that \
              NVIDIA's nvJitLink.h declares"
)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::Library;

use crate::environment::Environment;
use crate::error::LibraryError;
use crate::ffi::{self, Handle, Output};
use crate::float_environment::AsInANewProcess;
use crate::library::{self, LibraryNames};
use crate::version::Version;

const WANTED: LibraryNames = LibraryNames {
    name: "nvJitLink (libnvJitLink.so)",
    file: "libnvJitLink.so",
    variable: crate::environment::NVJITLINK,
    wheels: &["cu13/lib", "nvjitlink/lib"],
    advice: "install it (`pip install nvidia-nvjitlink`, or a CUDA toolkit of 12.0 or later), or name it in \
             WARPCC_NVJITLINK",
};

/// `nvJitLinkResult` of nvJitLink.h, in order.
const RESULTS: [&str; 19] = [
    "SUCCESS",
    "ERROR_UNRECOGNIZED_OPTION",
    "ERROR_MISSING_ARCH",
    "ERROR_INVALID_INPUT",
    "ERROR_PTX_COMPILE",
    "ERROR_NVVM_COMPILE",
    "ERROR_INTERNAL",
    "ERROR_THREADPOOL",
    "ERROR_UNRECOGNIZED_INPUT",
    "ERROR_FINALIZE",
    "ERROR_NULL_INPUT",
    "ERROR_INCOMPATIBLE_OPTIONS",
    "ERROR_INCORRECT_INPUT_TYPE",
    "ERROR_ARCH_MISMATCH",
    "ERROR_OUTDATED_LIBRARY",
    "ERROR_MISSING_FATBIN",
    "ERROR_UNRECOGNIZED_ARCH",
    "ERROR_UNSUPPORTED_ARCH",
    "ERROR_LTO_NOT_ENABLED",
];

type CreateLink = unsafe extern "C" fn(*mut Handle, u32, *const *const c_char) -> c_int;
type DestroyLink = unsafe extern "C" fn(*mut Handle) -> c_int;
type AddData = unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> c_int;
type OfHandle = unsafe extern "C" fn(Handle) -> c_int;

/// nvJitLink, which stays loaded until the process ends. Any number of threads may use it.
#[derive(Debug)]
pub(crate) struct NvJitLink {
    version: Version,
    path: PathBuf,
    create: CreateLink,
    destroy: DestroyLink,
    add: AddData,
    complete: OfHandle,
    error_log: Output,
    info_log: Output,
    cubin: Output,
}

/// The input of a link, in nvJitLink's terms.
pub(crate) struct LinkJob<'j> {
    pub options: &'j [CString],
    /// `nvJitLinkInputType`, bytes and name.
    pub pieces: &'j [(c_int, &'j [u8], CString)],
}

/// Why a job failed: nvJitLink's name for the error, its log, and the piece that it is about.
pub(crate) struct NvJitLinkError {
    pub code: String,
    pub log: String,
    pub piece: Option<usize>,
}

impl NvJitLink {
    pub(crate) fn find(
        explicit: Option<&Path>,
        beside: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, LibraryError> {
        library::find(&WANTED, explicit, beside, environment, |library| {
            let named = Named::find(library);
            named
                .ok_or("what was found has none of nvJitLink's functions")?
                .load()
        })
    }

    /// As [`library::locate`].
    pub(crate) fn locate(beside: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
        library::locate(&WANTED, beside, environment)
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The library's file; empty if the system does not report it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Links, and returns the cubin and the log.
    pub(crate) fn run(&self, job: &LinkJob<'_>) -> Result<(Vec<u8>, String), NvJitLinkError> {
        let _usual = AsInANewProcess::begin();
        let options: Vec<_> = job.options.iter().map(|option| option.as_ptr()).collect();
        let mut linking = Linking {
            library: self,
            handle: ptr::null_mut(),
        };
        // SAFETY: as many options as are said, each ending with a zero, and a live pointer for the answer.
        let code = unsafe {
            (self.create)(
                &raw mut linking.handle,
                u32::try_from(options.len()).unwrap_or(u32::MAX),
                options.as_ptr(),
            )
        };
        if code != 0 {
            // nvJitLink 12.0 has freed the handle and leaves the pointer: there is no log, and nothing to destroy.
            linking.handle = ptr::null_mut();
        }
        linking.check(code, None)?;
        for (index, (kind, bytes, name)) in job.pieces.iter().enumerate() {
            // SAFETY: the bytes are as many as are said, and live until the linking is done; the name ends with a
            // zero. That their content cannot harm the library is not known.
            let code = unsafe {
                (self.add)(
                    linking.handle,
                    *kind,
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    name.as_ptr(),
                )
            };
            linking.check(code, Some(index))?;
        }
        // SAFETY: a live handle.
        let code = unsafe { (self.complete)(linking.handle) };
        linking.check(code, None)?;
        let cubin = linking.bytes(self.cubin)?;
        let log = linking.text(self.info_log);
        Ok((cubin, log))
    }
}

/// A linking in progress, destroyed when it is dropped.
struct Linking<'l> {
    library: &'l NvJitLink,
    handle: Handle,
}

impl Linking<'_> {
    fn check(&self, code: c_int, piece: Option<usize>) -> Result<(), NvJitLinkError> {
        if code == 0 {
            return Ok(());
        }
        let name = usize::try_from(code)
            .ok()
            .and_then(|code| RESULTS.get(code));
        Err(NvJitLinkError {
            code: name.map_or_else(
                || format!("error {code}"),
                |name| format!("NVJITLINK_{name}"),
            ),
            log: self.text(self.library.error_log),
            piece,
        })
    }

    fn bytes(&self, output: Output) -> Result<Vec<u8>, NvJitLinkError> {
        // SAFETY: a live handle.
        unsafe { output.bytes(self.handle) }.or_else(|code| {
            self.check(code, None)?;
            Ok(Vec::new())
        })
    }

    /// A log; empty if it cannot be read, because a log only explains another error.
    fn text(&self, output: Output) -> String {
        if self.handle.is_null() {
            return String::new();
        }
        // SAFETY: a live handle.
        unsafe { output.text(self.handle) }.unwrap_or_default()
    }
}

impl Drop for Linking<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle is nvJitLink's and is not used again. An error here leaves nothing to do.
            unsafe { (self.library.destroy)(&raw mut self.handle) };
        }
    }
}

/// How a library names its functions.
struct Named {
    library: &'static Library,
    /// The version in the names, if they have one.
    suffix: Option<Version>,
}

impl Named {
    fn find(library: &'static Library) -> Option<Self> {
        let plain = std::iter::once(None);
        let versions = [13, 12].into_iter().flat_map(|major| {
            (0..16)
                .rev()
                .map(move |minor| Some(Version::new(major, minor)))
        });
        plain
            .chain(versions)
            .map(|suffix| Self { library, suffix })
            .find(|named| named.function::<CreateLink>("Create").is_ok())
    }

    fn load(&self) -> Result<NvJitLink, String> {
        let output = |name: &str| {
            let (size, get) = (self.name(&format!("{name}Size")), self.name(name));
            // SAFETY: each has the type that nvJitLink.h declares.
            unsafe { Output::find(self.library, &size, &get) }
        };
        let create: CreateLink = self.function("Create")?;
        Ok(NvJitLink {
            version: self.version(),
            path: library::file_at(create as usize).unwrap_or_default(),
            create,
            destroy: self.function("Destroy")?,
            add: self.function("AddData")?,
            complete: self.function("Complete")?,
            error_log: output("GetErrorLog")?,
            info_log: output("GetInfoLog")?,
            cubin: output("GetLinkedCubin")?,
        })
    }

    fn version(&self) -> Version {
        if let Some(version) = self.suffix {
            return version;
        }
        // SAFETY: it takes two numbers.
        let version = unsafe { ffi::version(self.library, "nvJitLinkVersion") };
        version.unwrap_or(Version::new(0, 0))
    }

    /// A function of nvJitLink's. `F` must be its type in nvJitLink.h; all types are listed above.
    fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: the callers give the name and the type that belong together.
        unsafe { ffi::function(self.library, &self.name(name)) }
    }

    fn name(&self, name: &str) -> String {
        match self.suffix {
            None => format!("nvJitLink{name}"),
            Some(Version { major, minor }) => format!("__nvJitLink{name}_{major}_{minor}"),
        }
    }
}
