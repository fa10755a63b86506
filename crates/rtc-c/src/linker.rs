//! nvJitLink for C: pieces in, one cubin out, without a cache.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use warpcc_rtc::{Compiled, Environment, Target};

use crate::error::Status;
use crate::ffi::{free, given, make, open};
use crate::images::Image;
use crate::pieces::Pieces;

/// nvJitLink, ready to link.
#[derive(Debug)]
pub struct Linker(warpcc_rtc::Linker);

/// Finds nvJitLink at `path` (the library or its folder), or with null in the places that docs/rtc.md lists.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_linker_open(
    path: *const c_char,
    linker: Option<&mut MaybeUninit<*mut Linker>>,
) -> Status {
    let find = |path: Option<&Path>, environment: &Environment| {
        warpcc_rtc::Linker::find_with(path, None, environment).map(Linker)
    };
    // SAFETY: as the caller says.
    unsafe { open(path, linker, "linker", find) }
}

/// Links pieces to one cubin for `target` ("sm_90"), with `count` options of nvJitLink, without a cache. Messages call the
/// result `name`.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_link(
    linker: Option<&Linker>,
    name: *const c_char,
    pieces: Option<&Pieces>,
    target: *const c_char,
    options: *const *const c_char,
    count: usize,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let linker = given(linker, "linker")?;
        let pieces = given(pieces, "pieces")?;
        // SAFETY: as the caller says.
        let request = unsafe { pieces.link_request(name, target, options, count) }?;
        let linked = linker.0.link(&request)?;
        Ok(Image::from_compiled(Compiled {
            target: Target::Cubin(request.target),
            image: linked.image,
            lowered: Vec::new(),
            log: linked.log,
        }))
    })
}

/// Frees the linker.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_linker_free(linker: Option<Box<Linker>>) {
    free(linker);
}
