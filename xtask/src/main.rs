//! Development tasks, run as `cargo xtask NAME`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these tasks are their own report"
)]

mod process;
mod repo;
mod suite;
mod tidy;
mod toolkit;

use std::process::ExitCode;

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
    /// Run the whole test suite, as CI does, installing what it needs
    Test(suite::Options),
    /// Check the rules of this repository that the compiler does not know
    Tidy,
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Toolkit { versions } => toolkit::main(&versions),
        Task::Test(options) => suite::main(&options),
        Task::Tidy => tidy::main(),
    }
}
