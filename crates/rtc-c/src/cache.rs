//! The kernel cache for C: images and functions by text, each compiled once.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use warpcc_rtc::{DriverVersion, Environment, KernelCache};

use crate::compiler::Compiler;
use crate::device::{Device, Function};
use crate::error::Status;
use crate::ffi::{answer, bytes, enter, free, given, given_mut, kernel_of, make, text};
use crate::images::Image;
use crate::pieces::Pieces;
use crate::remote::Attached;
use crate::request::{CallLimits, CompileRequest, limits};
use crate::settings::{CacheSettings, Chosen};

/// A cache: kernels as text in, images and functions out, each compiled once.
#[derive(Debug)]
pub struct Cache(pub(crate) Arc<KernelCache>, pub(crate) Attached);

/// How often images were found, and where.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Counts {
    /// Found in memory.
    pub memory: u64,
    /// Found in a folder.
    pub disk: u64,
    /// Found in a shared cache.
    pub shared: u64,
    /// Not found, so made.
    pub made: u64,
}

impl From<warpcc_rtc::Counts> for Counts {
    fn from(counts: warpcc_rtc::Counts) -> Self {
        Self {
            memory: counts.memory,
            disk: counts.disk,
            shared: counts.shared,
            made: counts.made,
        }
    }
}

/// Opens a cache. Each argument may be null: then the machine's compiler is used, or the settings of the environment, or
/// kernels have no common part. The texts before the source, headers, include folders and options of `common` are part of
/// every kernel that is requested by its texts (not by a request). All arguments may be freed afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cache_open(
    compiler: Option<&Compiler>,
    settings: Option<&CacheSettings>,
    common: Option<&CompileRequest>,
    cache: Option<&mut MaybeUninit<*mut Cache>>,
) -> Status {
    make(cache, "cache", || {
        let environment = Environment::of_process();
        let Chosen { kept, remote } = match settings {
            Some(settings) => settings.copy(),
            None => warpcc_rtc::CacheSettings::from_environment(&environment).into(),
        };
        let compiler = match compiler {
            Some(compiler) => compiler.0.clone(),
            None => warpcc_rtc::Compiler::find_for(&kept, &environment)?,
        };
        let attached = Attached::open(&remote, &environment, &kept);
        let cache = KernelCache::with(compiler, kept, attached.upstream());
        let cache = match common {
            Some(common) => cache.compiled_with(common.copy()),
            None => cache,
        };
        Ok(Cache(Arc::new(cache), attached))
    })
}

/// The image of a request: from memory, from a folder, or compiled now. Every hit checks the included files again.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cache_get(
    cache: Option<&Cache>,
    request: Option<&CompileRequest>,
    limits: Option<&CallLimits<'_>>,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let cache = given(cache, "cache")?;
        // A change of the request has to wait until this call ends, even if it compiles.
        let request = given(request, "request")?.read();
        Ok(cache.0.get(&request, &self::limits(limits))?.into())
    })
}

/// The image of the kernel `name` (as in C++: `scale<float>`) of a source, with `parameters` as text before it, for
/// `target`. `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_get_image(
    cache: Option<&Cache>,
    parameters: *const c_char,
    name: *const c_char,
    source: *const c_char,
    length: usize,
    target: *const c_char,
    limits: Option<&CallLimits<'_>>,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let cache = given(cache, "cache")?;
        // SAFETY: as the caller says.
        let (parameters, name, source) = unsafe { kernel_of(parameters, name, source, length) }?;
        // SAFETY: likewise.
        let target = unsafe { text(target, "target") }?.parse()?;
        let limits = self::limits(limits);
        let found = cache
            .0
            .get_image(parameters, name, source, target, &limits)?;
        Ok(found.into())
    })
}

/// Links pieces for `target` ("sm_90"), with `count` options of nvJitLink: like `warpcc_rtc_link`, but through the cache.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_get_linked(
    cache: Option<&Cache>,
    name: *const c_char,
    pieces: Option<&Pieces>,
    target: *const c_char,
    options: *const *const c_char,
    count: usize,
    limits: Option<&CallLimits<'_>>,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let cache = given(cache, "cache")?;
        let pieces = given(pieces, "pieces")?;
        // SAFETY: as the caller says.
        let request = unsafe { pieces.link_request(name, target, options, count) }?;
        Ok(cache.0.get_linked(&request, &self::limits(limits))?.into())
    })
}

/// The cubin of a PTX text for `target` ("sm_90"): like a driver's JIT, but through the cache, and without a GPU. `length`
/// is in bytes, with or without a NUL at the end.
///
/// # Safety
/// Each pointer to a text or bytes is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_load_ptx(
    cache: Option<&Cache>,
    name: *const c_char,
    ptx: *const c_void,
    length: usize,
    target: *const c_char,
    limits: Option<&CallLimits<'_>>,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let cache = given(cache, "cache")?;
        // SAFETY: as the caller says.
        let (name, ptx, target) = unsafe {
            let ptx = bytes(ptx, length, "ptx")?;
            (text(name, "name")?, ptx, text(target, "target")?.parse()?)
        };
        let limits = self::limits(limits);
        Ok(cache.0.load_ptx(name, ptx, target, &limits)?.into())
    })
}

/// The image that a driver would run from a fat binary, a cubin or a PTX text on a GPU of compute capability `capability`
/// (90), by the driver's rules. PTX is compiled through the cache. `driver` is the driver's version as `cuDriverGetVersion`
/// returns it (13000), or 0 for a driver that knows every PTX.
///
/// # Safety
/// Each pointer to a text or bytes is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_get_fatbin(
    cache: Option<&Cache>,
    name: *const c_char,
    fatbin: *const c_void,
    length: usize,
    capability: u32,
    driver: u32,
    limits: Option<&CallLimits<'_>>,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let cache = given(cache, "cache")?;
        // SAFETY: as the caller says.
        let (name, fatbin) = unsafe { (text(name, "name")?, bytes(fatbin, length, "fatbin")?) };
        let small = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let driver = (driver != 0).then(|| DriverVersion {
            major: small(driver / 1000),
            minor: small(driver % 1000 / 10),
        });
        let limits = self::limits(limits);
        let found = cache
            .0
            .get_fatbin(name, fatbin, capability, driver, &limits)?;
        Ok(found.into())
    })
}

/// The same call as MXNet's: the kernel `name` of a source, with `parameters` as text before it, ready to launch on
/// `device`. The first request compiles and loads it; later ones only look it up in memory. `length` of the source is in
/// bytes, or `WARPCC_RTC_TO_NUL`.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_get_function(
    cache: Option<&Cache>,
    parameters: *const c_char,
    name: *const c_char,
    source: *const c_char,
    length: usize,
    device: Option<&Device>,
    limits: Option<&CallLimits<'_>>,
    function: Option<&mut MaybeUninit<*mut Function>>,
) -> Status {
    make(function, "function", || {
        let cache = given(cache, "cache")?;
        // SAFETY: as the caller says.
        let (parameters, name, source) = unsafe { kernel_of(parameters, name, source, length) }?;
        let device = given(device, "device")?;
        let limits = self::limits(limits);
        let found = cache
            .0
            .get_function(parameters, name, source, &device.0, &limits)?;
        Ok(Function::new(found, device))
    })
}

/// Removes every loaded function from the cache; those that the program holds stay loaded. Call it before you destroy a
/// context.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cache_unload_functions(cache: Option<&Cache>) -> Status {
    enter(|| {
        given(cache, "cache")?.0.unload_functions();
        Ok(())
    })
}

/// Copies the best target for a GPU of compute capability `capability` (90), by the settings, into `buffer`. 32 bytes are
/// enough.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_target_for(
    cache: Option<&Cache>,
    capability: u32,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    let target = || {
        let target = given(cache, "cache")?.0.target_for(capability)?;
        Ok(target.to_string())
    };
    // SAFETY: as the caller says.
    unsafe { answer(buffer, size, length, target) }
}

/// How often images were found, and where. Functions from memory are not counted.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cache_counts(
    cache: Option<&Cache>,
    counts: Option<&mut MaybeUninit<Counts>>,
) -> Status {
    enter(|| {
        let counted = given(cache, "cache")?.0.counts();
        given_mut(counts, "counts")?.write(counted.into());
        Ok(())
    })
}

/// Copies the remarks (problems so far that are not errors) into `buffer` of `size` bytes, one per line, cut to fit, with a
/// NUL. `length` is set to the whole length without the NUL. `buffer` may be null if `size` is 0, and `length` may be null.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_remarks(
    cache: Option<&Cache>,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    let remarks = || {
        let cache = given(cache, "cache")?;
        let mut remarks = cache.1.remarks();
        remarks.extend(cache.0.remarks());
        Ok(remarks.join("\n"))
    };
    // SAFETY: as the caller says.
    unsafe { answer(buffer, size, length, remarks) }
}

/// Waits at most `timeout_ms` milliseconds until new results are uploaded to the shared caches, and tries servers again that
/// failed a while ago. Sets `waiting`, which may be null, to 0, or to 1 if some results are not uploaded yet. The next
/// process that uses the folder, or `warpcc remote upload`, then uploads them, and a remark says why they wait. Uploads run
/// in the background anyway: call this at the end of a program, or in a CI job whose folder is deleted.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cache_flush(
    cache: Option<&Cache>,
    timeout_ms: u64,
    waiting: Option<&mut MaybeUninit<i32>>,
) -> Status {
    enter(|| {
        let waits = given(cache, "cache")?
            .1
            .flush(Duration::from_millis(timeout_ms));
        if let Some(waiting) = waiting {
            waiting.write(i32::from(waits));
        }
        Ok(())
    })
}

/// Frees the cache. Its images, functions and kernels stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cache_free(cache: Option<Box<Cache>>) {
    free(cache);
}
