//! A program to compile, put together piece by piece; and how long it may take.
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
    /// For as long as it is read, it cannot be changed.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, warpcc_rtc::CompileRequest> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// As it is now, for what takes long: the texts themselves are shared.
    pub(crate) fn copy(&self) -> warpcc_rtc::CompileRequest {
        self.read().clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut warpcc_rtc::CompileRequest)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A request to give up, which any thread may make.
#[derive(Debug)]
pub struct Cancel(warpcc_rtc::Cancel);

/// How long something may take. Null in its place: as long as it takes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CallLimits<'c> {
    /// From the call on, in milliseconds; 0: no limit.
    pub timeout_ms: u64,
    /// Who may ask to give up; null: nobody. NVRTC before 12.8 cannot be stopped: then it is asked before it starts.
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

/// Makes a request to give up that nobody has made yet.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cancel_new(cancel: Option<&mut MaybeUninit<*mut Cancel>>) -> Status {
    make(cancel, "cancel", || Ok(Cancel(warpcc_rtc::Cancel::new())))
}

/// Asks whatever was given this to give up.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cancel(cancel: Option<&Cancel>) -> Status {
    enter(|| {
        given(cancel, "cancel")?.0.cancel();
        Ok(())
    })
}

/// Frees it; what was given it goes on.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_cancel_free(cancel: Option<Box<Cancel>>) {
    free(cancel);
}

/// Makes a request: what messages call the program, its source, and for what it is compiled ("sm_90" for machine code,
/// "compute_90" for PTX, "lto_90" for LTO-IR). `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
///
/// For `warpcc_rtc_cache_open`, which takes only texts, folders and options of it, name and source may be "" and the
/// target null.
///
/// # Safety
/// The texts are as they are said to be.
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

/// A text of `length` bytes (or `WARPCC_RTC_TO_NUL`) to stand before the source, behind those given so far. Messages call
/// it `name` and count its lines by themselves.
///
/// # Safety
/// The texts are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_preamble(
    request: Option<&CompileRequest>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    let given = unsafe { Given::new(name, text, length) };
    change(request, given, |request, text| request.preamble.push(text))
}

/// A header of `length` bytes (or `WARPCC_RTC_TO_NUL`), by the very name that `#include` says.
///
/// # Safety
/// The texts are as they are said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_header(
    request: Option<&CompileRequest>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    let given = unsafe { Given::new(name, text, length) };
    change(request, given, |request, text| request.headers.push(text))
}

/// A folder in which headers are looked for, behind those given so far. With none, NVRTC opens no file at all.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_include_folder(
    request: Option<&CompileRequest>,
    folder: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let folder = unsafe { text(folder, "folder") };
    change(request, Given(folder), |request, folder| {
        request.include_folders.push(folder.into());
    })
}

/// A name as C++ has it (`scale<float>`), whose name in the image is wanted.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_name(
    request: Option<&CompileRequest>,
    expression: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let expression = unsafe { text(expression, "expression") };
    change(request, Given(expression), |request, expression| {
        request.name_expressions.push(expression.into());
    })
}

/// An option, as NVRTC takes it, in one piece: "--std=c++20", "-DN=4".
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_request_add_option(
    request: Option<&CompileRequest>,
    option: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let option = unsafe { text(option, "option") };
    change(request, Given(option), |request, option| {
        request.options.push(option.into());
    })
}

/// Whether NVRTC may keep the headers it has read for the next program of this process (12.8): 0 or 1.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_request_precompile_headers(
    request: Option<&CompileRequest>,
    precompile: i32,
) -> Status {
    change(request, Given(Ok(precompile)), |request, precompile| {
        request.precompiled_headers = match precompile {
            0 => PrecompiledHeaders::Off,
            _ => PrecompiledHeaders::Automatic,
        };
    })
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_request_free(request: Option<Box<CompileRequest>>) {
    free(request);
}

/// An argument, or the error of reading it.
struct Given<T>(Result<T, Failure>);

impl Given<Text> {
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
    what: Given<T>,
    change: impl FnOnce(&mut warpcc_rtc::CompileRequest, T),
) -> Status {
    enter(|| {
        let request = given(request, "request")?;
        let what = what.0?;
        request.change(|request| change(request, what));
        Ok(())
    })
}
