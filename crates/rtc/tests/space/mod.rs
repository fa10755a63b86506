//! The NVRTCs of PyPI, caches, and programs to compile, for the tests of this crate.
#![allow(dead_code, reason = "each test program needs another part")]
#![allow(unused_imports, reason = "each test program needs another part")]

use std::path::Path;

use warpcc_rtc::{
    CacheSettings, CallLimits, Cancel, CompileRequest, Compiler, Error, Image, KernelCache,
};

pub use warpcc_testkit::Nvrtc;
pub use warpcc_testkit::nvrtc::nvfatbin;

/// The compiler that it is.
pub fn open_compiler(nvrtc: &Nvrtc) -> Compiler {
    Compiler::open(&nvrtc.folder).unwrap_or_else(|error| panic!("NVRTC {}: {error}", nvrtc.version))
}

/// A program for `target`.
pub fn request(name: &str, source: &str, target: &str) -> CompileRequest {
    CompileRequest::new(name, source, target.parse().expect("a target"))
}

/// A cache with its results in `folder`.
pub fn cache_in(folder: &Path) -> KernelCache {
    KernelCache::with(
        open_compiler(&Nvrtc::newest()),
        CacheSettings::in_folder(folder),
        None,
    )
}

/// The image of a request, which must compile.
pub fn get(cache: &KernelCache, one: &CompileRequest) -> Image {
    cache
        .get(one, &CallLimits::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The image, if it is in the cache. A miss is cancelled before it compiles.
pub fn cached(cache: &KernelCache, one: &CompileRequest) -> Option<Image> {
    let cancel = Cancel::new();
    cancel.cancel();
    let limits = CallLimits {
        cancel: Some(cancel),
        ..CallLimits::default()
    };
    match cache.get(one, &limits) {
        Ok(image) => Some(image),
        Err(Error::Cancelled { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}
