//! Many kernels at once, for C.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use warpcc_rtc::{ManyOptions, Progress};

use crate::cache::Cache;
use crate::error::{Failure, Status};
use crate::ffi::{enter, given, list};
use crate::images::Image;
use crate::request::{CallLimits, CompileRequest, limits};

/// Called once for each image that is done, by the thread that asked: how many are done, how many were asked for, the name of
/// this one (valid during the call) and its status. 0 cancels the rest, any other number goes on. It must not unwind.
pub type ProgressCallback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        done: usize,
        total: usize,
        name: *const c_char,
        status: Status,
    ) -> i32,
>;

/// The images of `count` requests, in their order: each as `warpcc_rtc_cache_get` gives it. They are looked up and compiled by
/// `threads` threads, 0 for as many as there are processors; no more compile than this machine has room for in all processes
/// of the user together. Where several processes ask for the same requests, each is compiled once. `images` has room for
/// `count` handles; those of requests that failed are null, and the first one's error is returned when all are done.
/// `progress` and `user` may be null. Changes of a request wait until this call ends.
///
/// # Safety
/// `requests` points to `count` requests and `images` has room for `count` handles, or they are null. `progress` is a function
/// that may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_cache_get_many(
    cache: Option<&Cache>,
    requests: *const Option<&CompileRequest>,
    count: usize,
    threads: usize,
    limits: Option<&CallLimits<'_>>,
    progress: ProgressCallback,
    user: *mut c_void,
    images: *mut *mut Image,
) -> Status {
    enter(|| {
        if images.is_null() && count > 0 {
            return Err(Failure::null("images"));
        }
        for index in 0..count {
            // SAFETY: as the caller says.
            unsafe { images.add(index).write(ptr::null_mut()) };
        }
        let cache = given(cache, "cache")?;
        // SAFETY: as the caller says.
        let requests = unsafe { list(requests, count, "requests") }?;
        let requests: Result<Vec<_>, Failure> = requests
            .iter()
            .map(|request| Ok(given(*request, "requests")?.copy()))
            .collect();
        let options = ManyOptions {
            threads,
            ..ManyOptions::default()
        };
        let tell = |step: &Progress<'_>| {
            let Some(progress) = progress else {
                return true;
            };
            let status = match step.result {
                Ok(_) => Status::Ok,
                Err(error) => Failure::from(error.clone()).status(),
            };
            // A request's name has no NUL.
            let name = CString::new(step.name).unwrap_or_default();
            // SAFETY: as the caller says.
            unsafe { progress(user, step.done, step.total, name.as_ptr(), status) != 0 }
        };
        let limits = self::limits(limits);
        let made = cache.0.get_many(&requests?, &options, &limits, tell);
        let mut first = Ok(());
        for (index, result) in made.into_iter().enumerate() {
            match result {
                Ok(image) => {
                    let handle = Box::into_raw(Box::new(Image::from(image)));
                    // SAFETY: as the caller says.
                    unsafe { images.add(index).write(handle) };
                }
                Err(error) if first.is_ok() => first = Err(error.into()),
                Err(_) => {}
            }
        }
        first
    })
}
