//! The C interface of `warpcc-rtc`: kernels as text, compiled, cached, loaded and launched, from C and C++.
//!
//! `cargo xtask header` writes `include/warpcc_rtc.h` from this crate's sources; docs/rtc-c.md shows how to use it.
//!
//! - Every function that can fail returns a [`error::Status`]; [`error`] keeps the error's text for the thread.
//! - No panic leaves a function ([`ffi`]); null pointers, texts that are not UTF-8 and texts with a NUL are errors
//!   that name the argument.
//! - Functions return opaque pointers, each with a function that frees it. Any thread may use any of them.

pub mod bundle;
pub mod cache;
pub mod compiler;
pub mod device;
pub mod error;
pub mod fatbin_maker;
pub mod ffi;
pub mod images;
pub mod kernel;
pub mod launcher;
pub mod linker;
pub mod many;
pub mod observe;
pub mod pieces;
pub mod plans;
mod remote;
pub mod request;
pub mod settings;
pub mod tensors;
pub mod version;
