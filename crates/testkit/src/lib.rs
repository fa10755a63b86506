//! Helpers that the tests of several crates share: toolkits, third-party servers, a browser, results of earlier runs.
//! Knows none of our crates.
//!
//! A helper that is missing on the machine is an error, never a skipped test: a suite that passes without having run
//! nvcc says nothing. Only servers that no package brings to every machine may be missing, and the tests say so.

pub mod browser;
pub mod buildgrid;
pub mod casd;
#[cfg(feature = "dispatcher")]
pub mod dispatcher;
pub mod folders;
pub mod github_cache;
pub mod nvrtc;
#[cfg(feature = "dispatcher")]
pub mod operations;
pub mod places;
pub mod stored_results;
pub mod toolkit;

pub use nvrtc::Nvrtc;
pub use toolkit::Toolkit;
