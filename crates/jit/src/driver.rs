//! The driver of the machine, by the few of its functions that load a module: the only unsafe code
//! of this crate.
//!
//! `libcuda.so.1` comes with the driver and is found at run time, so that a machine without one still has a warpcc that
//! starts. A module from a file may crash the driver, so callers load it in a separate process (see
//! [`crate::Loading`]).
#![expect(
    unsafe_code,
    reason = "a C library that is found at run time has no safe interface; each call below gives \
              the types that NVIDIA's cuda.h declares"
)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use libloading::Library;
use warpcc_fatbin::DriverVersion;

use crate::loading::GpuWithDriver;

/// The library's name, which the dynamic linker looks for.
const LIBRARY: &str = "libcuda.so.1";
/// `CUdevice_attribute` of the compute capability's two numbers.
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
/// `CUjit_option`: where the compiler's complaints go, and how long that is.
const ERROR_LOG: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;
/// Bytes for complaints.
const LOG_SIZE: usize = 16 << 10;
/// Zeros behind an image: a text must end with one, and a driver reads ahead in words.
const PADDING: usize = 64;

type Handle = *mut c_void;
type Init = unsafe extern "C" fn(c_uint) -> c_int;
type GetInt = unsafe extern "C" fn(*mut c_int) -> c_int;
type DeviceGet = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type DeviceName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type DeviceAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type ContextRetain = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
type OfHandle = unsafe extern "C" fn(Handle) -> c_int;
type ModuleLoad = unsafe extern "C" fn(*mut Handle, *const c_void) -> c_int;
type ModuleLoadEx =
    unsafe extern "C" fn(*mut Handle, *const c_void, c_uint, *mut c_int, *mut Handle) -> c_int;
type LibraryLoad = unsafe extern "C" fn(
    *mut Handle,
    *const c_void,
    *mut c_int,
    *mut Handle,
    c_uint,
    *mut c_int,
    *mut Handle,
    c_uint,
) -> c_int;
type LibraryModule = unsafe extern "C" fn(*mut Handle, Handle) -> c_int;
type ErrorName = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// An error of the driver, or the reason why there is no driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// No library.
    #[error("there is no NVIDIA driver here: {0}")]
    Missing(String),
    /// A library that lacks a function.
    #[error("the driver is too old, or is not a driver: {0}")]
    Function(String),
    /// It says no.
    #[error("{call}: {name} ({number})")]
    Cuda {
        /// The function.
        call: &'static str,
        /// The error's number in `cuda.h`.
        number: u32,
        /// Its name there.
        name: String,
        /// The compiler's log, where it was asked for.
        log: String,
    },
}

/// How a module is given to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadOptions {
    /// `cuModuleLoadData`, without options.
    #[default]
    Module,
    /// `cuModuleLoadDataEx`, with the compiler's complaints.
    Logged,
    /// `cuLibraryLoadData`, as the CUDA 12 runtime does (inferred).
    Library,
}

/// A driver with a context on one device.
pub struct Loader {
    library: Library,
    /// The GPU and the driver's version.
    pub gpu: GpuWithDriver,
}

impl Loader {
    /// Loads the driver and takes a device, by its number.
    ///
    /// # Errors
    /// There is no driver, or no such device.
    pub fn open(device: u32) -> Result<Self, DriverError> {
        // SAFETY: the constructors of the machine's own driver run; there is nothing to uphold.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|error| DriverError::Missing(error.to_string()))?;
        let mut opened = Self {
            library,
            gpu: GpuWithDriver {
                driver: DriverVersion { major: 0, minor: 0 },
                number: 0,
                name: String::new(),
            },
        };
        opened.gpu = opened.start(device)?;
        Ok(opened)
    }

    fn start(&self, ordinal: u32) -> Result<GpuWithDriver, DriverError> {
        let init: Init = self.function(b"cuInit\0")?;
        let version: GetInt = self.function(b"cuDriverGetVersion\0")?;
        let get: DeviceGet = self.function(b"cuDeviceGet\0")?;
        let name: DeviceName = self.function(b"cuDeviceGetName\0")?;
        let attribute: DeviceAttribute = self.function(b"cuDeviceGetAttribute\0")?;
        let retain: ContextRetain = self.function(b"cuDevicePrimaryCtxRetain\0")?;
        let set_current: OfHandle = self.function(b"cuCtxSetCurrent\0")?;
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let (mut cuda, mut device, mut major, mut minor) = (0, 0, 0, 0);
        let mut context: Handle = ptr::null_mut();
        let mut shown = [0; 256];
        // SAFETY: every pointer is to a live value of the type that cuda.h declares, and the name's
        // length is that of its buffer less the zero that is kept at its end.
        unsafe {
            self.check("cuInit", init(0))?;
            self.check("cuDriverGetVersion", version(&raw mut cuda))?;
            self.check("cuDeviceGet", get(&raw mut device, ordinal))?;
            self.check("cuDeviceGetName", name(shown.as_mut_ptr(), 255, device))?;
            let major = attribute(&raw mut major, MAJOR, device);
            self.check("cuDeviceGetAttribute", major)?;
            let minor = attribute(&raw mut minor, MINOR, device);
            self.check("cuDeviceGetAttribute", minor)?;
            let retained = retain(&raw mut context, device);
            self.check("cuDevicePrimaryCtxRetain", retained)?;
            self.check("cuCtxSetCurrent", set_current(context))?;
        }
        let small = |number: c_int| u16::try_from(number).unwrap_or(0);
        // SAFETY: the last byte was never written, so there is a zero.
        let shown = unsafe { CStr::from_ptr(shown.as_ptr()) };
        Ok(GpuWithDriver {
            driver: DriverVersion {
                major: small(cuda / 1000),
                minor: small(cuda % 1000 / 10),
            },
            number: u32::from(small(major)) * 10 + u32::from(small(minor)),
            name: shown.to_string_lossy().into_owned(),
        })
    }

    /// Loads a fat binary, a cubin or a PTX text and unloads it; gives the time of the loading.
    ///
    /// # Errors
    /// The driver's.
    pub fn load(&self, image: &[u8], options: LoadOptions) -> Result<Duration, DriverError> {
        // A fat binary's fields are words of eight bytes, but it may be at any place in a file.
        let mut words = vec![0_u64; (image.len() + PADDING).div_ceil(8)];
        for (word, bytes) in words.iter_mut().zip(image.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        let data = words.as_ptr().cast::<c_void>();
        match options {
            LoadOptions::Module => self.load_module(data),
            LoadOptions::Logged => self.load_logged(data),
            LoadOptions::Library => self.load_library(data),
        }
    }

    fn load_module(&self, data: *const c_void) -> Result<Duration, DriverError> {
        let load: ModuleLoad = self.function(b"cuModuleLoadData\0")?;
        let mut module: Handle = ptr::null_mut();
        let start = Instant::now();
        // SAFETY: `data` is the caller's image, with zeros behind it, and lives until this returns.
        // That its contents cannot harm the driver is not known: hence a process of its own.
        let error = unsafe { load(&raw mut module, data) };
        let time = start.elapsed();
        self.check("cuModuleLoadData", error)?;
        self.unload(module)?;
        Ok(time)
    }

    fn load_logged(&self, data: *const c_void) -> Result<Duration, DriverError> {
        let load: ModuleLoadEx = self.function(b"cuModuleLoadDataEx\0")?;
        let mut module: Handle = ptr::null_mut();
        let mut log = vec![0_u8; LOG_SIZE];
        let mut options = [ERROR_LOG, ERROR_LOG_SIZE];
        // A number is passed in place of the pointer, as cuda.h requires.
        let mut values: [Handle; 2] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_SIZE - 1),
        ];
        let start = Instant::now();
        // SAFETY: as in `load_module`; both lists have the two values that are said, and the log
        // is as long as is said and one zero more.
        let error = unsafe {
            load(
                &raw mut module,
                data,
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let time = start.elapsed();
        self.check("cuModuleLoadDataEx", error)
            .map_err(|error| with_log(error, &log))?;
        self.unload(module)?;
        Ok(time)
    }

    fn load_library(&self, data: *const c_void) -> Result<Duration, DriverError> {
        let load: LibraryLoad = self.function(b"cuLibraryLoadData\0")?;
        let module_of: LibraryModule = self.function(b"cuLibraryGetModule\0")?;
        let unload: OfHandle = self.function(b"cuLibraryUnload\0")?;
        let (mut library, mut module): (Handle, Handle) = (ptr::null_mut(), ptr::null_mut());
        let start = Instant::now();
        // SAFETY: as in `load_module`; no options are given, which the two zeros say.
        let error = unsafe {
            load(
                &raw mut library,
                data,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            )
        };
        self.check("cuLibraryLoadData", error)?;
        // A library is loaded into a context when its module is first asked for.
        // SAFETY: `library` is what the driver has just given.
        let error = unsafe { module_of(&raw mut module, library) };
        let time = start.elapsed();
        // SAFETY: likewise, and it is not used again.
        let unloaded = unsafe { unload(library) };
        self.check("cuLibraryGetModule", error)?;
        self.check("cuLibraryUnload", unloaded)?;
        Ok(time)
    }

    fn unload(&self, module: Handle) -> Result<(), DriverError> {
        let unload: OfHandle = self.function(b"cuModuleUnload\0")?;
        // SAFETY: the driver has just given this module, and it is not used again.
        self.check("cuModuleUnload", unsafe { unload(module) })
    }

    /// A function of the driver. `F` must be its type in cuda.h; all types are listed above.
    fn function<F: Copy>(&self, name: &'static [u8]) -> Result<F, DriverError> {
        // SAFETY: the callers give the name and the type that belong together, and what they get
        // is used while `self` keeps the library.
        let found = unsafe { self.library.get::<F>(name) };
        found
            .map(|function| *function)
            .map_err(|error| DriverError::Function(error.to_string()))
    }

    fn check(&self, call: &'static str, error: c_int) -> Result<(), DriverError> {
        if error == 0 {
            return Ok(());
        }
        let name = self.name_of(error);
        Err(DriverError::Cuda {
            call,
            number: u32::try_from(error).unwrap_or(u32::MAX),
            name: name.unwrap_or_else(|| "an unnamed error".to_owned()),
            log: String::new(),
        })
    }

    fn name_of(&self, error: c_int) -> Option<String> {
        let name_of: ErrorName = self.function(b"cuGetErrorName\0").ok()?;
        let mut name: *const c_char = ptr::null();
        // SAFETY: the pointer is to a live one, which the driver points to a text of its own.
        let found = unsafe { name_of(error, &raw mut name) };
        if found != 0 || name.is_null() {
            return None;
        }
        // SAFETY: the driver's texts end with a zero, and stay.
        let text = unsafe { CStr::from_ptr(name) };
        Some(text.to_string_lossy().into_owned())
    }
}

fn with_log(error: DriverError, bytes: &[u8]) -> DriverError {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let said = String::from_utf8_lossy(&bytes[..end]).trim().to_owned();
    match error {
        DriverError::Cuda {
            call, number, name, ..
        } => DriverError::Cuda {
            call,
            number,
            name,
            log: said,
        },
        other => other,
    }
}
