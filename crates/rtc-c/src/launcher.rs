//! The launcher of plans on a GPU, for C.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;

use warpcc_kernels::Launcher as RustLauncher;
use warpcc_rtc::KernelCache;

use crate::cache::{Cache, Counts};
use crate::device::{CUstream_st, Device};
use crate::error::Status;
use crate::ffi::{answer, enter, free, given, given_mut, make};
use crate::plans::Plan;
use crate::request::{CallLimits, limits};

/// Starts plans on a GPU.
#[derive(Debug)]
pub struct Launcher(RustLauncher);

/// Makes a launcher for a GPU. It uses the cache's compiler, settings and shared caches, with counts of its own.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_launcher_new(
    cache: Option<&Cache>,
    device: Option<&Device>,
    launcher: Option<&mut MaybeUninit<*mut Launcher>>,
) -> Status {
    make(launcher, "launcher", || {
        let Cache(cache, attached) = given(cache, "cache")?;
        let device = given(device, "device")?;
        let (compiler, settings) = (cache.compiler().clone(), cache.settings().clone());
        let own = KernelCache::with(compiler, settings, attached.upstream());
        Ok(Launcher(RustLauncher::new(own, device.0.clone())))
    })
}

/// Starts a plan's kernels on `stream` (null: the default stream) and does not wait for them. It first asks the driver
/// whether it knows the arrays' addresses. The caller must make sure that the arrays have the stated sizes and stay until
/// the stream is done. The GPU's context becomes the thread's.
///
/// # Safety
/// The stream belongs to the launcher's context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_launcher_run(
    launcher: Option<&Launcher>,
    plan: Option<&Plan>,
    stream: *mut CUstream_st,
    limits: Option<&CallLimits<'_>>,
) -> Status {
    enter(|| {
        let launcher = &given(launcher, "launcher")?.0;
        let plan = &given(plan, "plan")?.0;
        // SAFETY: as the caller says.
        let stream = unsafe { Device(launcher.device().clone()).stream(stream) };
        launcher.run(plan, &stream, &self::limits(limits))?;
        Ok(())
    })
}

/// How often images were found, and where.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_launcher_counts(
    launcher: Option<&Launcher>,
    counts: Option<&mut MaybeUninit<Counts>>,
) -> Status {
    enter(|| {
        let counted = given(launcher, "launcher")?.0.cache().counts();
        given_mut(counts, "counts")?.write(counted.into());
        Ok(())
    })
}

/// Copies the launcher's remarks, as `warpcc_rtc_cache_remarks` copies those of a cache.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_launcher_remarks(
    launcher: Option<&Launcher>,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    let remarks = || Ok(given(launcher, "launcher")?.0.cache().remarks().join("\n"));
    // SAFETY: as the caller says.
    unsafe { answer(buffer, size, length, remarks) }
}

/// Frees the launcher; kernels that it started go on.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_launcher_free(launcher: Option<Box<Launcher>>) {
    free(launcher);
}
