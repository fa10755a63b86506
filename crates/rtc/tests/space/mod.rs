//! Helpers for the tests of this crate: the NVRTCs of PyPI, and programs to compile.
#![allow(dead_code, reason = "each test program needs another part")]
#![allow(unused_imports, reason = "each test program needs another part")]

use warpcc_rtc::{CompileRequest, Compiler};

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
