//! Embeds headers and device functions into a program while it is built, for `warpcc-rtc` to compile and link at run time.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), warpcc_rtc_build::EmbedError> {
//!     warpcc_rtc_build::Embed::new()
//!         .header_dir("kernels/include")
//!         .lto("kernels/functions.cu")
//!         .architectures(["80", "90"])
//!         .write("kernels") // warpcc_rtc::embedded!("kernels") in the program
//! }
//! ```
//!
//! `warpcc rtc embed` is the same as a program, for other build systems.

mod accessor;
mod build_script;
mod depfile;
mod embed;
mod header_names;
mod nvcc;

pub use accessor::{Accessor, NotAnAccessor};
pub use depfile::depfile;
pub use embed::{BundleOutput, Embed, EmbedError};
