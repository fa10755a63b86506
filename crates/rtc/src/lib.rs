//! Kernels as text: compiles them with NVRTC, keeps what comes of it for every process and machine, loads and launches them.
//!
//! - [`Compiler`] turns a [`Request`] into a [`Compiled`] image for a [`Target`]: no GPU, no driver, no cache.
//! - [`kernels`] are there already: functions over arrays, and expressions of them, planned and launched.
//!
//! Nothing of NVIDIA's is linked. Libraries are found when they are first needed; one that is missing is an
//! [`Error`] that lists what was tried.

mod compiler;
mod diagnostics;
mod environment;
mod error;
pub mod kernels;
mod library;
pub mod load;
mod nvrtc;
mod request;
mod target;

pub use compiler::{Cancel, Compiled, Compiler, Limits};
pub use diagnostics::Place;
pub use environment::Environment;
pub use error::{CompileFailure, Error, ErrorKind, LibraryError};
pub use nvrtc::Version;
pub use request::{PrecompiledHeaders, Request, Text};
pub use target::{NotATarget, RealArch, Target, VirtualArch};
