//! The `warpcc` binary: argv in, exit code out.
#![allow(
    dead_code,
    unused_imports,
    reason = "stands in until the driver is wired"
)]

mod cli;
mod config;
mod report;

fn main() {}
