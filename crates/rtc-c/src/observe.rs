//! What a cache tells a C program about each request.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::UNIX_EPOCH;

use warpcc_rtc::{CacheEvent, Observer};

use crate::error::{Failure, Status};
use crate::images::Found;
use crate::settings::{CacheSettings, change};

/// A request that a cache has answered. Everything is valid during the call only. A later version may add members at the end.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// The name of the program, the link or the PTX text.
    pub name: *const c_char,
    /// The key in hexadecimal; empty if it is not known.
    pub key: *const c_char,
    /// 0, or why there is no image.
    pub status: Status,
    /// The place where the image was found; `WARPCC_RTC_FOUND_MADE` for a miss. Undefined with another status than 0.
    pub found: Found,
    /// The error's text; null with status 0.
    pub error: *const c_char,
    /// When the request began, in seconds since 1970.
    pub started: f64,
    /// How long it took, in seconds, waiting for other threads and processes included.
    pub seconds: f64,
}

/// Called after each request, by the thread that asked. It may use the cache, and must not unwind.
pub type ObserverCallback = Option<unsafe extern "C" fn(user: *mut c_void, event: *const Event)>;

/// Called once with `user`, when no settings and no cache need it any more.
pub type Release = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// What a program gave with its callback.
struct User {
    pointer: *mut c_void,
    release: Release,
}

// SAFETY: the program says that any thread may use what it gave.
unsafe impl Send for User {}
// SAFETY: likewise.
unsafe impl Sync for User {}

impl User {
    fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the program gave both for this call.
            unsafe { release(self.pointer) };
        }
    }
}

/// Calls `observer` after each request of the caches that are opened with these settings, and of their launchers: after each
/// hit, miss and error. Any thread may call it at any time. Requests for functions that are already loaded are not told.
/// `user` and `release` may be null. `release` is called once, also if this call fails; after that `observer` is not called.
///
/// # Safety
/// `observer` and `release` are functions that any thread may call with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_settings_observe(
    settings: Option<&CacheSettings>,
    observer: ObserverCallback,
    user: *mut c_void,
    release: Release,
) -> Status {
    let user = User {
        pointer: user,
        release,
    };
    change(settings, |settings| {
        let observer = observer.ok_or_else(|| Failure::null("observer"))?;
        settings.kept.observer = Some(Observer::new(move |event| {
            // SAFETY: as the caller says.
            with(event, |event| unsafe { observer(user.pointer(), event) });
        }));
        Ok(())
    })
}

/// Calls `tell` with the event in the form of C.
fn with(event: &CacheEvent<'_>, tell: impl FnOnce(*const Event)) {
    // A text with a NUL, which is an error in a request, is shown as empty.
    let text = |text: &str| CString::new(text).unwrap_or_default();
    let name = text(event.name);
    let key = text(&event.key.map(|key| key.hex()).unwrap_or_default());
    let failure = event.outcome.err().cloned();
    let error = failure.as_ref().map(|error| text(&error.to_string()));
    let started = event.started.duration_since(UNIX_EPOCH);
    tell(&Event {
        name: name.as_ptr(),
        key: key.as_ptr(),
        status: failure.map_or(Status::Ok, |error| Failure::from(error).status()),
        found: event.outcome.map_or(Found::Made, Found::from),
        error: error.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
        started: started.unwrap_or_default().as_secs_f64(),
        seconds: event.took.as_secs_f64(),
    });
}
