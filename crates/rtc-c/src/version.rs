//! The version of this library, and whether a program was compiled for it.
#![expect(
    unsafe_code,
    reason = "names that C finds must not be taken twice in one program, which only the linker sees"
)]

use std::ffi::c_char;

use crate::error::{Failure, Status};
use crate::ffi::enter;

/// The number of this interface. It changes if a program that was compiled with an older header would no longer run
/// correctly. New functions or numbers do not change it.
pub const WARPCC_RTC_ABI: u32 = 1;
/// The version of the header; `warpcc_rtc_version` returns the library's.
pub const WARPCC_RTC_VERSION_MAJOR: u32 = 0;
/// The second part of the version.
pub const WARPCC_RTC_VERSION_MINOR: u32 = 1;
/// The third part of the version.
pub const WARPCC_RTC_VERSION_PATCH: u32 = 0;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The library's version: "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// The number of the library's interface.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_abi() -> u32 {
    WARPCC_RTC_ABI
}

/// Whether the library is the one that the program was compiled for: call it first, with `WARPCC_RTC_ABI`.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_check_abi(abi: u32) -> Status {
    enter(|| match abi {
        WARPCC_RTC_ABI => Ok(()),
        other => Err(Failure::invalid(
            "abi",
            format!(
                "the program was compiled for interface {other}, but this library ({}) has {WARPCC_RTC_ABI}: compile it \
                 with this library's warpcc_rtc.h",
                env!("CARGO_PKG_VERSION")
            ),
        )),
    })
}
