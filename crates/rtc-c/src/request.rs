//! A program to compile, assembled piece by piece, and the time limits for it.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use warpcc_rtc::{PrecompiledHeaders, RealArch, Target, Text};

use crate::error::{Failure, Status};
use crate::ffi::{enter, free, given, long_text, make, text};

/// A program to compile.
#[derive(Debug)]
pub struct CompileRequest(RwLock<warpcc_rtc::CompileRequest>);

impl CompileRequest {
    /// While this guard exists, the request cannot be changed.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, warpcc_rtc::CompileRequest> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the request for a long operation; the texts themselves are shared.
    pub(crate) fn copy(&self) -> warpcc_rtc::CompileRequest {
        self.read().clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut warpcc_rtc::CompileRequest)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A cancellation, which any thread may trigger.
#[derive(Debug)]
pub struct Cancel(warpcc_rtc::Cancel);

/// The limits of a call. Null in its place means no limit.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CallLimits<'c> {
    /// The time from the start of the call in milliseconds; 0: no limit.
    pub timeout_ms: u64,
    /// The cancellation of the call; null: none. NVRTC before 12.8 cannot be stopped: it is only checked before the start.
    pub cancel: Option<&'c Cancel>,
}

pub(crate) fn limits(limits: Option<&CallLimits<'_>>) -> warpcc_rtc::CallLimits {
    let Some(limits) = limits else {
        return warpcc_rtc::CallLimits::default();
    };
    let timeout = Duration::from_millis(limits.timeout_ms);
    warpcc_rtc::CallLimits {
        deadline: (!timeout.is_zero())
            .then(|| Instant::now().checked_add(timeout))
            .flatten(),
        cancel: limits.cancel.map(|cancel| cancel.0.clone()),
    }
}

/// Makes a cancellation that is not triggered.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cancel_new(cancel: Option<&mut MaybeUninit<*mut Cancel>>) -> Status {
    make(cancel, "cancel", || Ok(Cancel(warpcc_rtc::Cancel::new())))
}

/// Cancels all calls that use it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cancel(cancel: Option<&Cancel>) -> Status {
    enter(|| {
        given(cancel, "cancel")?.0.cancel();
        Ok(())
    })
}

/// Frees the cancellation; calls that use it go on.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cancel_free(cancel: Option<Box<Cancel>>) {
    free(cancel);
}

/// Makes a request from the program's name in messages, its source, and its target ("sm_90" for machine code, "compute_90"
/// for PTX, "lto_90" for LTO-IR). `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
///
/// `warpcc_rtc_cache_open` uses only the texts, folders and options of a request. For it, name and source may be "" and the
/// target null.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_new(
    name: *const c_char,
    source: *const c_char,
    length: usize,
    target: *const c_char,
    request: Option<&mut MaybeUninit<*mut CompileRequest>>,
) -> Status {
    make(request, "request", || {
        // SAFETY: as the caller says.
        let (name, source) = unsafe { (text(name, "name")?, long_text(source, length, "source")?) };
        let target = match target.is_null() {
            true => Target::Cubin(RealArch::new(0)),
            // SAFETY: likewise.
            false => unsafe { text(target, "target") }?.parse()?,
        };
        let made = warpcc_rtc::CompileRequest::new(name, source, target);
        Ok(CompileRequest(RwLock::new(made)))
    })
}

/// Adds a text of `length` bytes (or `WARPCC_RTC_TO_NUL`) before the source, after earlier ones. Messages call it `name` and
/// count its lines separately.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_preamble(
    request: Option<&CompileRequest>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    let given = unsafe { Argument::new(name, text, length) };
    change(request, given, |request, text| request.preamble.push(text))
}

/// Adds a header of `length` bytes (or `WARPCC_RTC_TO_NUL`), under the exact name in the `#include`.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_header(
    request: Option<&CompileRequest>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    let given = unsafe { Argument::new(name, text, length) };
    change(request, given, |request, text| request.headers.push(text))
}

/// Adds an include folder, after earlier ones. Without one, NVRTC opens no file at all.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_include_folder(
    request: Option<&CompileRequest>,
    folder: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let folder = unsafe { text(folder, "folder") };
    change(request, Argument(folder), |request, folder| {
        request.include_folders.push(folder.into());
    })
}

/// Adds a name in C++ (`scale<float>`) whose name in the image is needed.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_name(
    request: Option<&CompileRequest>,
    expression: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let expression = unsafe { text(expression, "expression") };
    change(request, Argument(expression), |request, expression| {
        request.name_expressions.push(expression.into());
    })
}

/// Adds an option for NVRTC, in one piece: "--std=c++20", "-DN=4".
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_option(
    request: Option<&CompileRequest>,
    option: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let option = unsafe { text(option, "option") };
    change(request, Argument(option), |request, option| {
        request.options.push(option.into());
    })
}

/// Sets the file that the source is from. Errors name it in place of the request's name, and so does debug information (`-G`,
/// `-lineinfo`). It decides nothing else.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_file(
    request: Option<&CompileRequest>,
    file: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let file = unsafe { text(file, "file") };
    change(request, Argument(file), |request, file| {
        request.file = Some(file.into());
    })
}

/// Sets whether NVRTC may keep the headers that it read for the next program of this process (12.8): 0 or 1.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_request_precompile_headers(
    request: Option<&CompileRequest>,
    precompile: i32,
) -> Status {
    change(request, Argument(Ok(precompile)), |request, precompile| {
        request.precompiled_headers = match precompile {
            0 => PrecompiledHeaders::Off,
            _ => PrecompiledHeaders::Automatic,
        };
    })
}

/// Frees the request.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_request_free(request: Option<Box<CompileRequest>>) {
    free(request);
}

/// An argument, or the error of reading it.
struct Argument<T>(Result<T, Failure>);

impl Argument<Text> {
    /// # Safety
    /// As [`text`] and [`long_text`].
    unsafe fn new(name: *const c_char, content: *const c_char, length: usize) -> Self {
        // SAFETY: as the caller says.
        let read = unsafe {
            text(name, "name").and_then(|name| Ok((name, long_text(content, length, "text")?)))
        };
        Self(read.map(|(name, content)| Text::new(name, content)))
    }
}

fn change<T>(
    request: Option<&CompileRequest>,
    what: Argument<T>,
    change: impl FnOnce(&mut warpcc_rtc::CompileRequest, T),
) -> Status {
    enter(|| {
        let request = given(request, "request")?;
        let what = what.0?;
        request.change(|request| change(request, what));
        Ok(())
    })
}
