//! `warpcc report`, `monitor` and `doctor`: what a build did, what runs now, what is wrong with a setup.
//!
//! Gathers what the report modules then write.

mod args;
mod builds;
mod doctor;
mod live;
mod projects;

pub use args::{DoctorArgs, MonitorArgs, ReportArgs};
pub use builds::report;
pub use doctor::doctor;
pub use live::monitor;
pub use projects::{projects, saved};
