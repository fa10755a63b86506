//! NVRTC for C: one text in, one image out, without a cache.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use warpcc_rtc::Environment;

use crate::error::Status;
use crate::ffi::{answer, enter, free, given, given_mut, make, open, text};
use crate::images::Image;
use crate::request::{CallLimits, CompileRequest, limits};

/// NVRTC, ready to compile.
#[derive(Debug)]
pub struct Compiler(pub(crate) warpcc_rtc::Compiler);

/// Finds NVRTC at `path` (the library or its folder), or with null in the places that docs/rtc.md lists.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_compiler_open(
    path: *const c_char,
    compiler: Option<&mut MaybeUninit<*mut Compiler>>,
) -> Status {
    let find = |path: Option<&Path>, environment: &Environment| {
        warpcc_rtc::Compiler::find_with(path, environment).map(Compiler)
    };
    // SAFETY: as the caller says.
    unsafe { open(path, compiler, "compiler", find) }
}

/// NVRTC's version.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_compiler_version(
    compiler: Option<&Compiler>,
    major: Option<&mut MaybeUninit<u32>>,
    minor: Option<&mut MaybeUninit<u32>>,
) -> Status {
    enter(|| {
        let version = given(compiler, "compiler")?.0.version();
        given_mut(major, "major")?.write(version.major);
        given_mut(minor, "minor")?.write(version.minor);
        Ok(())
    })
}

/// Copies the path of NVRTC's file into `buffer`, as `warpcc_rtc_cache_remarks` does.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_compiler_library(
    compiler: Option<&Compiler>,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    let library = || {
        let library = given(compiler, "compiler")?.0.library();
        Ok(library.to_string_lossy().into_owned())
    };
    // SAFETY: as the caller says.
    unsafe { answer(buffer, size, length, library) }
}

/// Copies the best target for a GPU of compute capability `capability` (ten times major plus minor: 90) into `buffer`, as
/// `warpcc_rtc_cache_remarks` does: "sm_90", or PTX for a GPU newer than NVRTC. 32 bytes are enough.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_compiler_target_for(
    compiler: Option<&Compiler>,
    capability: u32,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    let target = || {
        let target = given(compiler, "compiler")?.0.target_for(capability)?;
        Ok(target.to_string())
    };
    // SAFETY: as the caller says.
    unsafe { answer(buffer, size, length, target) }
}

/// Writes the headers that NVRTC carries (13.3 and newer) into `folder`, unless they exist, and adds their include folders
/// to `request`.
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_compiler_install_headers(
    compiler: Option<&Compiler>,
    folder: *const c_char,
    request: Option<&CompileRequest>,
) -> Status {
    enter(|| {
        let compiler = given(compiler, "compiler")?;
        let request = given(request, "request")?;
        // SAFETY: as the caller says.
        let folder = unsafe { text(folder, "folder") }?;
        let folders = compiler.0.install_bundled_headers(Path::new(folder))?;
        request.change(|request| request.include_folders.extend(folders));
        Ok(())
    })
}

/// Compiles a request without a cache.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_compile(
    compiler: Option<&Compiler>,
    request: Option<&CompileRequest>,
    limits: Option<&CallLimits<'_>>,
    image: Option<&mut MaybeUninit<*mut Image>>,
) -> Status {
    make(image, "image", || {
        let compiler = given(compiler, "compiler")?;
        let request = given(request, "request")?.copy();
        let compiled = compiler.0.compile(&request, &self::limits(limits))?;
        Ok(Image::from_compiled(compiled))
    })
}

/// Frees the compiler; its images stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_compiler_free(compiler: Option<Box<Compiler>>) {
    free(compiler);
}
