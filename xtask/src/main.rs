//! Development tasks, run as `cargo xtask NAME`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these tasks are their own report"
)]

mod process;
mod repo;
mod toolkit;

use anyhow::Result;
use clap::Parser;

/// Development tasks of warpcc.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Install a CUDA toolkit from PyPI and print the path of its nvcc
    Toolkit {
        /// 13.5 (the default), 13.0, …, or `all`
        versions: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Task::parse() {
        Task::Toolkit { versions } => toolkit::main(&versions),
    }
}
