//! Bundles for C: headers and LTO-IR that were embedded into the program.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use warpcc_rtc::ItemKind;

use crate::error::{Failure, Status};
use crate::ffi::{answer, bytes, enter, free, given, given_mut, make};
use crate::request::CompileRequest;

/// Headers and LTO-IR as one block of bytes, as `warpcc rtc embed` and CMake's `warpcc_rtc_embed` make it.
#[derive(Debug)]
pub struct Bundle(warpcc_rtc::Bundle);

/// Opens a bundle. Its list is read and verified, and the bytes are copied. Nothing is decompressed until something is compiled.
///
/// # Safety
/// Each pointer to a text or bytes is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_bundle_open(
    bytes: *const c_void,
    length: usize,
    bundle: Option<&mut MaybeUninit<*mut Bundle>>,
) -> Status {
    make(bundle, "bundle", || {
        // SAFETY: as the caller says.
        let bytes = unsafe { self::bytes(bytes, length, "bytes") }?;
        let opened = warpcc_rtc::Bundle::open(bytes.to_vec());
        let opened = opened.map_err(|error| Failure::invalid("bundle", error.to_string()))?;
        Ok(Bundle(opened))
    })
}

/// Stores how many headers and how many pieces of LTO-IR a bundle has. Each pointer may be null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_bundle_count(
    bundle: Option<&Bundle>,
    headers: Option<&mut MaybeUninit<usize>>,
    fragments: Option<&mut MaybeUninit<usize>>,
) -> Status {
    enter(|| {
        let bundle = given(bundle, "bundle")?;
        let count = |wanted| bundle.0.items().filter(|item| item.0 == wanted).count();
        for (place, kind) in [(headers, ItemKind::Header), (fragments, ItemKind::Fragment)] {
            if place.is_some() {
                given_mut(place, "count")?.write(count(kind));
            }
        }
        Ok(())
    })
}

/// Copies a bundle's digest, 64 hexadecimal digits, into `buffer`. It is the same for the same names and contents.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_bundle_digest(
    bundle: Option<&Bundle>,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    let digest = || Ok(given(bundle, "bundle")?.0.digest_hex());
    // SAFETY: as the caller says.
    unsafe { answer(buffer, size, length, digest) }
}

/// Frees the bundle. Requests that it was added to keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_bundle_free(bundle: Option<Box<Bundle>>) {
    free(bundle);
}

/// Adds a bundle: its headers can be included under their names, and a cache links machine code with its LTO-IR. The key has
/// the bundle's digest.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_request_add_bundle(
    request: Option<&CompileRequest>,
    bundle: Option<&Bundle>,
) -> Status {
    enter(|| {
        let request = given(request, "request")?;
        let bundle = given(bundle, "bundle")?.0.clone();
        request.change(|request| request.bundles.push(bundle));
        Ok(())
    })
}
