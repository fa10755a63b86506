//! nvFatbin's own functions, loaded at run time: images in, one fat binary out. cudarc lacks them.
#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each call below gives the types that \
              NVIDIA's nvFatbin.h declares"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::Library;

use crate::environment::Environment;
use crate::error::LibraryError;
use crate::ffi::{self, ErrorString, Handle, Output, function};
use crate::library::{self, LibraryNames};
use crate::version::Version;

const WANTED: LibraryNames = LibraryNames {
    name: "nvFatbin (libnvfatbin.so)",
    file: "libnvfatbin.so",
    variable: crate::environment::NVFATBIN,
    wheels: &["cu13/lib", "nvfatbin/lib"],
    advice: "install it (`pip install nvidia-nvfatbin`, or a CUDA toolkit of 12.4 or later), or name it in \
             WARPCC_NVFATBIN",
};

type CreateFatbin = unsafe extern "C" fn(*mut Handle, *const *const c_char, usize) -> c_int;
type DestroyFatbin = unsafe extern "C" fn(*mut Handle) -> c_int;
/// The arguments are code, size, architecture and name.
type AddCubin =
    unsafe extern "C" fn(Handle, *const c_void, usize, *const c_char, *const c_char) -> c_int;
/// The same, with options for the compiler that will compile the code.
type AddText = unsafe extern "C" fn(
    Handle,
    *const c_void,
    usize,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;

/// nvFatbin, which stays loaded until the process ends. Any number of threads may use it.
#[derive(Debug)]
pub(crate) struct NvFatbin {
    version: Version,
    path: PathBuf,
    create: CreateFatbin,
    destroy: DestroyFatbin,
    cubin: AddCubin,
    ptx: AddText,
    lto_ir: AddText,
    error_string: ErrorString,
    output: Output,
}

/// The kind of an image, in nvFatbin's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Cubin,
    Ptx,
    LtoIr,
}

/// An image for the fat binary. PTX ends with a zero.
pub(crate) struct Part<'j> {
    pub kind: PartKind,
    pub bytes: &'j [u8],
    /// The architecture: `90a`.
    pub arch: CString,
    pub name: CString,
    pub options: CString,
}

/// Why a job failed: nvFatbin's message, and the image that it is about.
pub(crate) struct NvFatbinError {
    pub code: String,
    pub part: Option<usize>,
}

impl NvFatbin {
    pub(crate) fn find(
        explicit: Option<&Path>,
        beside: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, LibraryError> {
        library::find(&WANTED, explicit, beside, environment, Self::load)
    }

    fn load(library: &'static Library) -> Result<Self, String> {
        // SAFETY: each has the type that nvFatbin.h declares; all types are listed above.
        unsafe {
            let create: CreateFatbin = function(library, "nvFatbinCreate")?;
            Ok(Self {
                version: ffi::version(library, "nvFatbinVersion")?,
                path: library::file_at(create as usize).unwrap_or_default(),
                create,
                destroy: function(library, "nvFatbinDestroy")?,
                cubin: function(library, "nvFatbinAddCubin")?,
                ptx: function(library, "nvFatbinAddPTX")?,
                lto_ir: function(library, "nvFatbinAddLTOIR")?,
                error_string: function(library, "nvFatbinGetErrorString")?,
                output: Output::find(library, "nvFatbinSize", "nvFatbinGet")?,
            })
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The library's file; empty if the system does not report it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn run(
        &self,
        options: &[CString],
        parts: &[Part<'_>],
    ) -> Result<Vec<u8>, NvFatbinError> {
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut making = Making {
            library: self,
            handle: ptr::null_mut(),
        };
        // SAFETY: as many options as are said, each ending with a zero, and a live pointer for the answer.
        let code =
            unsafe { (self.create)(&raw mut making.handle, options.as_ptr(), options.len()) };
        if code != 0 {
            // It is not documented whether there is something to destroy.
            making.handle = ptr::null_mut();
        }
        self.check(code, None)?;
        for (index, part) in parts.iter().enumerate() {
            let (bytes, size) = (part.bytes.as_ptr().cast::<c_void>(), part.bytes.len());
            let (arch, name) = (part.arch.as_ptr(), part.name.as_ptr());
            let add = match part.kind {
                PartKind::Cubin => None,
                PartKind::Ptx => Some(self.ptx),
                PartKind::LtoIr => Some(self.lto_ir),
            };
            // SAFETY: the bytes are as many as are said, and live until the fat binary is made; the texts end with a
            // zero. That the bytes' content cannot harm the library is not known.
            let code = unsafe {
                match add {
                    None => (self.cubin)(making.handle, bytes, size, arch, name),
                    Some(add) => {
                        let options = part.options.as_ptr();
                        add(making.handle, bytes, size, arch, name, options)
                    }
                }
            };
            self.check(code, Some(index))?;
        }
        // SAFETY: a live handle.
        unsafe { self.output.bytes(making.handle) }.or_else(|code| {
            self.check(code, None)?;
            Ok(Vec::new())
        })
    }

    fn check(&self, code: c_int, part: Option<usize>) -> Result<(), NvFatbinError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: any number is allowed; the answer is a text of nvFatbin's own, or null.
        let text = unsafe { (self.error_string)(code) };
        let code = match text.is_null() {
            true => format!("error {code}"),
            // SAFETY: as above; it ends with a zero and stays.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        };
        Err(NvFatbinError { code, part })
    }
}

/// An unfinished fat binary, destroyed when it is dropped.
struct Making<'l> {
    library: &'l NvFatbin,
    handle: Handle,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle is nvFatbin's and is not used again. An error here leaves nothing to do.
            unsafe { (self.library.destroy)(&raw mut self.handle) };
        }
    }
}
