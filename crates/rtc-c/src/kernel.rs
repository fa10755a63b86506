//! A kernel's texts for C, read once for repeated requests.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use warpcc_rtc::KernelCache;

use crate::cache::Cache;
use crate::device::{Device, Function};
use crate::error::{Failure, Status};
use crate::ffi::{enter, free, given, kernel_of, make, text};
use crate::request::{CallLimits, limits};

/// A kernel's texts, read and hashed once, in a cache.
#[derive(Debug)]
pub struct Kernel {
    cache: Arc<KernelCache>,
    kernel: warpcc_rtc::Kernel,
    /// The same with its file, once that is set.
    in_file: OnceLock<warpcc_rtc::Kernel>,
}

/// Reads and hashes a kernel's texts once, for `warpcc_rtc_kernel_function`. This compiles nothing. The cache lives as long
/// as the kernel.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_kernel_new(
    cache: Option<&Cache>,
    parameters: *const c_char,
    name: *const c_char,
    source: *const c_char,
    length: usize,
    kernel: Option<&mut MaybeUninit<*mut Kernel>>,
) -> Status {
    make(kernel, "kernel", || {
        let cache = given(cache, "cache")?;
        // SAFETY: as the caller says.
        let (parameters, name, source) = unsafe { kernel_of(parameters, name, source, length) }?;
        Ok(Kernel {
            cache: cache.0.clone(),
            kernel: warpcc_rtc::Kernel::new(parameters, name, source),
            in_file: OnceLock::new(),
        })
    })
}

/// Sets the file that the kernel's source is from, once, for errors: they name it in place of the kernel's name. It decides
/// nothing else.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_kernel_file(
    kernel: Option<&Kernel>,
    file: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let file = unsafe { text(file, "file") };
    enter(|| {
        let Kernel {
            kernel, in_file, ..
        } = given(kernel, "kernel")?;
        let set = in_file.set(kernel.clone().in_file(file?));
        set.map_err(|_| Failure::invalid("file", "it has been set before"))
    })
}

/// Like `warpcc_rtc_cache_get_function`; a repeated call takes well under a microsecond, however long the texts are.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_kernel_function(
    kernel: Option<&Kernel>,
    device: Option<&Device>,
    limits: Option<&CallLimits<'_>>,
    function: Option<&mut MaybeUninit<*mut Function>>,
) -> Status {
    make(function, "function", || {
        let Kernel {
            cache,
            kernel,
            in_file,
        } = given(kernel, "kernel")?;
        let kernel = in_file.get().unwrap_or(kernel);
        let device = given(device, "device")?;
        let found = cache.get_function_of(kernel, &device.0, &self::limits(limits))?;
        Ok(Function::new(found, device))
    })
}

/// Frees the kernel; its functions stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_kernel_free(kernel: Option<Box<Kernel>>) {
    free(kernel);
}
