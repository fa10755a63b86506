//! Where a cache keeps images, and how many, as C says it.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through border.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use warpcc_rtc::{Environment, Tier};

use crate::border::{enter, free, given, make, text};
use crate::failure::{Failure, Status};

/// How a cache behaves.
#[derive(Debug)]
pub struct Settings(Mutex<warpcc_rtc::Settings>);

impl Settings {
    pub(crate) fn copy(&self) -> warpcc_rtc::Settings {
        let settings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        settings.clone()
    }
}

fn change(
    settings: Option<&Settings>,
    change: impl FnOnce(&mut warpcc_rtc::Settings) -> Result<(), Failure>,
) -> Status {
    enter(|| {
        let settings = given(settings, "settings")?;
        change(&mut settings.0.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// Settings that keep everything in memory, and nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_new(
    settings: Option<&mut MaybeUninit<*mut Settings>>,
) -> Status {
    make(settings, "settings", || Ok(Settings(Mutex::default())))
}

/// Settings as the process's environment has them: docs/rtc.md has the table.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_from_environment(
    settings: Option<&mut MaybeUninit<*mut Settings>>,
) -> Status {
    make(settings, "settings", || {
        let environment = Environment::of_process();
        let read = warpcc_rtc::Settings::from_environment(&environment);
        Ok(Settings(Mutex::new(read)))
    })
}

/// A folder behind those given so far: what is found in one is kept in those before it. `max_size` is in bytes, 0 for no
/// limit; `readonly` is 0 or 1. The path is absolute.
///
/// # Safety
/// The text is as it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_settings_add_folder(
    settings: Option<&Settings>,
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
                format!("{} is no absolute path", path.display()),
            ));
        }
        settings.tiers.push(Tier {
            path,
            max_size,
            readonly: readonly != 0,
        });
        Ok(())
    })
}

/// The most to keep in memory, in bytes of images.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_memory(settings: Option<&Settings>, bytes: u64) -> Status {
    change(settings, |settings| {
        settings.memory = bytes;
        Ok(())
    })
}

/// As CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT have it, 0 or 1 each.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_ptx_jit(
    settings: Option<&Settings>,
    force: i32,
    disable: i32,
) -> Status {
    change(settings, |settings| {
        settings.force_ptx_jit = force != 0;
        settings.disable_ptx_jit = disable != 0;
        Ok(())
    })
}

/// Frees them; caches opened with them stay as they are.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_settings_free(settings: Option<Box<Settings>>) {
    free(settings);
}
