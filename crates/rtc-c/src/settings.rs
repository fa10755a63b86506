//! Where a cache keeps images, and how many: the settings for C.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use warpcc_rtc::{Environment, Tier};

use crate::error::{Failure, Status};
use crate::ffi::{enter, free, given, make, text};
use crate::remote::{self, Named};

/// How a cache behaves.
#[derive(Debug)]
pub struct CacheSettings(Mutex<Chosen>);

/// The settings that were chosen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    pub(crate) kept: warpcc_rtc::CacheSettings,
    pub(crate) remote: Named,
}

impl From<warpcc_rtc::CacheSettings> for Chosen {
    fn from(kept: warpcc_rtc::CacheSettings) -> Self {
        Self {
            kept,
            remote: Named::Nothing,
        }
    }
}

impl CacheSettings {
    pub(crate) fn copy(&self) -> Chosen {
        let settings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        settings.clone()
    }
}

fn change(
    settings: Option<&CacheSettings>,
    change: impl FnOnce(&mut Chosen) -> Result<(), Failure>,
) -> Status {
    enter(|| {
        let settings = given(settings, "settings")?;
        change(&mut settings.0.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// Settings that keep everything in memory, and nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_new(
    settings: Option<&mut MaybeUninit<*mut CacheSettings>>,
) -> Status {
    make(settings, "settings", || Ok(CacheSettings(Mutex::default())))
}

/// Settings as the process's environment has them: docs/rtc.md has the table.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_from_environment(
    settings: Option<&mut MaybeUninit<*mut CacheSettings>>,
) -> Status {
    make(settings, "settings", || {
        let environment = Environment::of_process();
        let read = warpcc_rtc::CacheSettings::from_environment(&environment);
        Ok(CacheSettings(Mutex::new(read.into())))
    })
}

/// A folder behind those given so far: what is found in one is kept in those before it. `max_size` is in bytes, 0 for no
/// limit; `readonly` is 0 or 1. The path is absolute.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_settings_add_folder(
    settings: Option<&CacheSettings>,
    folder: *const c_char,
    max_size: u64,
    readonly: i32,
) -> Status {
    // SAFETY: as the caller says.
    let folder = unsafe { text(folder, "folder") };
    change(settings, |settings| {
        let path = PathBuf::from(folder?);
        if !path.is_absolute() {
            return Err(Failure::invalid(
                "folder",
                format!("{} is not an absolute path", path.display()),
            ));
        }
        settings.kept.tiers.push(Tier {
            path,
            max_size,
            readonly: readonly != 0,
        });
        Ok(())
    })
}

/// The most to keep in memory, in bytes of images.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_memory(
    settings: Option<&CacheSettings>,
    bytes: u64,
) -> Status {
    change(settings, |settings| {
        settings.kept.memory = bytes;
        Ok(())
    })
}

/// As CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT have it, 0 or 1 each.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_ptx_jit(
    settings: Option<&CacheSettings>,
    force: i32,
    disable: i32,
) -> Status {
    change(settings, |settings| {
        settings.kept.force_ptx_jit = force != 0;
        settings.kept.disable_ptx_jit = disable != 0;
        Ok(())
    })
}

/// Has caches look into the shared caches that `remote` names as `WARPCC_REMOTE` does ("redis://cache:6379"), behind the
/// folders, and upload what they make; "none" for none; null for those that `WARPCC_REMOTE` or the settings file names, as
/// docs/remote.md has them. Without this call, no cache reaches out. The first folder that may be written to takes what
/// comes; servers that fail are no errors but remarks of the cache. A library that was built without shared caches says
/// `WARPCC_RTC_STATUS_UNSUPPORTED`.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_settings_remote(
    settings: Option<&CacheSettings>,
    remote: *const c_char,
) -> Status {
    let named = match remote.is_null() {
        true => Ok(Named::Configured),
        // SAFETY: as the caller says.
        false => unsafe { text(remote, "remote") }.map(|text| Named::As(text.to_owned())),
    };
    change(settings, |settings| {
        let named = named?;
        remote::check(&named)?;
        settings.remote = named;
        Ok(())
    })
}

/// Frees them; caches opened with them stay as they are.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_free(settings: Option<Box<CacheSettings>>) {
    free(settings);
}
