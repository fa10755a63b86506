//! Development tasks, run as `cargo xtask NAME`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these tasks are their own report"
)]

mod audit_ptx;
mod bench;
mod demo;
mod dist;
mod dist_try;
mod docs;
mod drawing;
mod matrix;
mod measure;
mod pip;
mod process;
mod programs;
mod release;
mod repo;
mod soak;
mod suite;
mod tidy;
mod toolkit;
mod weight;
mod workloads;

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
    /// Compile one file with nvcc and with warpcc, and show what the cache does
    Demo(demo::DemoOptions),
    /// Measure nvcc, warpcc and other caches on one file, and draw a chart
    Bench(bench::BenchOptions),
    /// Build real projects' files with nvcc and with warpcc, and compare every output
    Workloads {
        /// The packages to make; all if none is named
        names: Vec<String>,
    },
    /// Build a project of CMake and Ninja with warpcc as launcher, and check every rebuild
    CmakeProject(workloads::cmake::CmakeOptions),
    /// Run the whole test suite, as CI does, installing what it needs
    Test(suite::SuiteOptions),
    /// Write docs/tutorial.md from what nvcc does
    Tutorial,
    /// Write docs/cli.md from the help of every command, and the picture of ARCHITECTURE.md from its table
    Docs,
    /// Write crates/rtc-c/include/warpcc_rtc.h from the sources of that crate
    Header,
    /// Look for wrong results: random histories, each call compared with a fresh nvcc
    Soak(soak::SoakOptions),
    /// Compare the PTX of cicc with that of its two halves, and the PTX of sources with equal device code
    AuditPtx(audit_ptx::AuditOptions),
    /// Try warpcc with every toolkit and host compiler that can be installed, and write docs/compatibility.md
    Matrix(matrix::MatrixOptions),
    /// Make the packages that people install (wheel, Debian package, tarball, crates) in dist/
    Dist(dist::DistOptions),
    /// Install the packages of `dist` in roots of old and new systems, use them, and remove them
    DistTry(dist_try::DistTryOptions),
    /// Make and check all files of a release, and publish nothing
    Release(release::ReleaseOptions),
    /// Check the rules of this repository that the compiler does not know
    Tidy,
    /// Count the lines, functions and files of a commit
    Weight(weight::WeightOptions),
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
        Task::Demo(options) => demo::main(&options),
        Task::Bench(options) => bench::main(&options),
        Task::Workloads { names } => workloads::main(&names),
        Task::CmakeProject(options) => workloads::cmake::main(&options),
        Task::Test(options) => suite::main(&options),
        Task::Tutorial => suite::tutorial(),
        Task::Docs => docs::main(),
        Task::Header => suite::header(),
        Task::Soak(options) => soak::main(&options),
        Task::AuditPtx(options) => audit_ptx::main(&options),
        Task::Matrix(options) => matrix::main(&options),
        Task::Dist(options) => dist::main(&options),
        Task::DistTry(options) => dist_try::main(&options),
        Task::Release(options) => release::main(&options),
        Task::Tidy => tidy::main(),
        Task::Weight(options) => weight::main(&options),
    }
}
