//! The settings of a cache for C: where it stores images, and how many.
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

/// The settings of a cache.
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

pub(crate) fn change(
    settings: Option<&CacheSettings>,
    change: impl FnOnce(&mut Chosen) -> Result<(), Failure>,
) -> Status {
    enter(|| {
        let settings = given(settings, "settings")?;
        change(&mut settings.0.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// Makes settings that keep images in memory only.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_new(
    settings: Option<&mut MaybeUninit<*mut CacheSettings>>,
) -> Status {
    make(settings, "settings", || Ok(CacheSettings(Mutex::default())))
}

/// Makes settings from the process's environment: docs/rtc.md has the table.
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

/// Adds a folder after earlier ones: an image found in one folder is copied to the folders before it. `max_size` is in
/// bytes, 0 for no limit; `readonly` is 0 or 1. The path is absolute.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
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

/// Adds a pack of ready-made images, which is only read: a file of `warpcc rtc warm --pack`, or a folder like those of a cache.
/// Packs are looked into after the folders. One that is damaged is no error, but a remark of the cache.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_settings_add_pack(
    settings: Option<&CacheSettings>,
    pack: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    let pack = unsafe { text(pack, "pack") };
    change(settings, |settings| {
        settings.kept.packs.push(PathBuf::from(pack?));
        Ok(())
    })
}

/// Sets the size of the cache in memory, in bytes of images.
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

/// Sets the values of CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT, 0 or 1 each.
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

/// Sets shared caches, which are used behind the folders and get new results. `remote` names them like `WARPCC_REMOTE`
/// ("redis://cache:6379"); "none" means none; null means those of `WARPCC_REMOTE` or of the settings file, as docs/remote.md
/// describes. Without this call, a cache uses no network. Fetched results are stored in the first folder that may be written
/// to. A server that fails is no error, but a remark of the cache. A library that was built without shared caches returns
/// `WARPCC_RTC_STATUS_UNSUPPORTED`.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
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

/// Frees the settings; caches that were opened with them do not change.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_free(settings: Option<Box<CacheSettings>>) {
    free(settings);
}
