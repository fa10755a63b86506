//! `warpcc report`, `monitor` and `doctor`: what a build did, what runs now, what is wrong with a setup.
//!
//! Gathers what the report modules then write.

mod args;
mod builds;

pub use args::ReportArgs;
pub use builds::report;
