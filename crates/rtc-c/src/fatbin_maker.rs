//! nvFatbin for C: images in, one fat binary out.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::path::Path;

use warpcc_rtc::{Environment, FatbinImage};

use crate::error::{Failure, Status};
use crate::ffi::{enter, free, given, make, open, show_bytes, texts};
use crate::pieces::Pieces;

/// nvFatbin, ready to make fat binaries.
#[derive(Debug)]
pub struct FatbinMaker(warpcc_rtc::FatbinMaker);

/// A fat binary.
#[derive(Debug)]
pub struct Fatbin(Vec<u8>);

/// Finds nvFatbin at `path` (the library or its folder), or with null in the places that docs/rtc.md lists.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_fatbin_maker_open(
    path: *const c_char,
    maker: Option<&mut MaybeUninit<*mut FatbinMaker>>,
) -> Status {
    let find = |path: Option<&Path>, environment: &Environment| {
        warpcc_rtc::FatbinMaker::find_with(path, None, environment).map(FatbinMaker)
    };
    // SAFETY: as the caller says.
    unsafe { open(path, maker, "maker", find) }
}

/// Makes a fat binary of the images in `pieces`, with `count` options of nvFatbin ("-compress=false").
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_fatbin_make(
    maker: Option<&FatbinMaker>,
    pieces: Option<&Pieces>,
    options: *const *const c_char,
    count: usize,
    fatbin: Option<&mut MaybeUninit<*mut Fatbin>>,
) -> Status {
    make(fatbin, "fatbin", || {
        let maker = given(maker, "maker")?;
        let pieces = given(pieces, "pieces")?.copy();
        // SAFETY: as the caller says.
        let options = unsafe { texts(options, count, "options") }?;
        let mut images = Vec::with_capacity(pieces.len());
        for (piece, target) in pieces {
            let target = target.ok_or_else(|| {
                let problem = format!(
                    "{:?} is a {}, and a fat binary holds images",
                    piece.name,
                    piece.kind.word()
                );
                Failure::invalid("pieces", problem)
            })?;
            images.push(FatbinImage {
                name: piece.name,
                target,
                bytes: piece.bytes,
                options: "".into(),
            });
        }
        Ok(Fatbin(maker.0.make(&images, &options)?))
    })
}

/// The fat binary's bytes, which are valid as long as it is.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_fatbin_bytes(
    fatbin: Option<&Fatbin>,
    bytes: Option<&mut MaybeUninit<*const c_void>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    enter(|| show_bytes(&given(fatbin, "fatbin")?.0, bytes, length))
}

/// Frees the fat binary.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_fatbin_free(fatbin: Option<Box<Fatbin>>) {
    free(fatbin);
}

/// Frees the maker; its fat binaries stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_fatbin_maker_free(maker: Option<Box<FatbinMaker>>) {
    free(maker);
}
