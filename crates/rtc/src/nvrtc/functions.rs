//! NVRTC's functions, with their types in nvrtc.h, and the errors of their calls.

#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each type below is the one that \
              NVIDIA's nvrtc.h declares"
)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::os::unix::Library;

use crate::ffi::{ErrorString, Handle, Output, function};

type Strings = *const *const c_char;
pub(super) type CreateProgram = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    Strings,
    Strings,
) -> c_int;
type DestroyProgram = unsafe extern "C" fn(*mut Handle) -> c_int;
type AddName = unsafe extern "C" fn(Handle, *const c_char) -> c_int;
type Compile = unsafe extern "C" fn(Handle, c_int, Strings) -> c_int;
type LoweredName = unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> c_int;
type GetInts = unsafe extern "C" fn(*mut c_int) -> c_int;
type Flow = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type SetFlow = unsafe extern "C" fn(Handle, Flow, *mut c_void) -> c_int;
type HeadersInfo = unsafe extern "C" fn(*mut RawHeaders, *mut *const c_char) -> c_int;
type InstallHeaders = unsafe extern "C" fn(*const c_char, c_uint, *mut *const c_char) -> c_int;

/// `nvrtcBundledHeadersInfo` of nvrtc.h.
#[repr(C)]
#[derive(Default)]
pub(super) struct RawHeaders {
    pub(super) available: c_int,
    pub(super) compressed_size: usize,
    pub(super) uncompressed_size: usize,
    pub(super) major: c_int,
    pub(super) minor: c_int,
    pub(super) files: c_uint,
}

/// The functions of NVRTC that are used.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) error_string: ErrorString,
    pub(super) create: CreateProgram,
    pub(super) destroy: DestroyProgram,
    pub(super) add_name: AddName,
    pub(super) compile: Compile,
    pub(super) lowered_name: LoweredName,
    pub(super) log: Output,
    pub(super) ptx: Output,
    pub(super) cubin: Output,
    pub(super) lto_ir: Output,
    /// From 12.8 on.
    pub(super) set_flow: Option<SetFlow>,
    /// From 13.3 on.
    pub(super) headers: Option<(HeadersInfo, InstallHeaders)>,
}

/// Why a job failed.
pub(crate) enum NvrtcError {
    /// `stop` returned true.
    Stopped,
    /// NVRTC refused the program; NVRTC's name for the error, and its log.
    Refused { code: String, log: String },
    /// A call failed for a reason other than the program's text.
    Call { call: &'static str, code: String },
}

impl Functions {
    pub(super) fn load(library: &'static Library) -> Result<Self, String> {
        // SAFETY: each has the type that nvrtc.h declares; all types are listed above.
        unsafe {
            let info = function(library, "nvrtcGetBundledHeadersInfo").ok();
            let install = function(library, "nvrtcInstallBundledHeaders").ok();
            Ok(Self {
                error_string: function(library, "nvrtcGetErrorString")?,
                create: function(library, "nvrtcCreateProgram")?,
                destroy: function(library, "nvrtcDestroyProgram")?,
                add_name: function(library, "nvrtcAddNameExpression")?,
                compile: function(library, "nvrtcCompileProgram")?,
                lowered_name: function(library, "nvrtcGetLoweredName")?,
                log: Output::find(library, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?,
                ptx: Output::find(library, "nvrtcGetPTXSize", "nvrtcGetPTX")?,
                cubin: Output::find(library, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")?,
                lto_ir: Output::find(library, "nvrtcGetLTOIRSize", "nvrtcGetLTOIR")?,
                set_flow: function(library, "nvrtcSetFlowCallback").ok(),
                headers: info.zip(install),
            })
        }
    }

    pub(super) fn fault(&self, call: &'static str, code: c_int) -> NvrtcError {
        NvrtcError::Call {
            call,
            code: self.name_of(code),
        }
    }

    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), NvrtcError> {
        match code {
            0 => Ok(()),
            code => Err(self.fault(call, code)),
        }
    }

    pub(super) fn name_of(&self, code: c_int) -> String {
        // SAFETY: any number is allowed; the answer is a text of NVRTC's own, or null.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: as above; it ends with a zero and stays.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

pub(super) fn architectures(library: &'static Library) -> Result<Vec<u32>, String> {
    // SAFETY: each has the type that nvrtc.h declares.
    let number: GetInts = unsafe { function(library, "nvrtcGetNumSupportedArchs") }?;
    // SAFETY: likewise.
    let list: GetInts = unsafe { function(library, "nvrtcGetSupportedArchs") }?;
    let mut length = 0;
    // SAFETY: a live number is given.
    let failed = unsafe { number(&raw mut length) } != 0;
    let mut all: Vec<c_int> = vec![0; usize::try_from(length).unwrap_or(0)];
    // SAFETY: the room is what NVRTC has just asked for.
    if failed || unsafe { list(all.as_mut_ptr()) } != 0 {
        return Err("it does not report which architectures it supports".to_owned());
    }
    let mut all: Vec<u32> = all.into_iter().map(small).collect();
    all.sort_unstable();
    Ok(all)
}

pub(super) fn small(number: c_int) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
