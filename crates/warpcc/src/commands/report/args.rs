//! The command line of `warpcc report`, as typed.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const REPORT_EXAMPLES: &str = "\
Examples:
  warpcc report                      the last build, in short
  warpcc report -o build.html        everything, as one HTML page
  warpcc report --list               the remembered builds
  warpcc report --build ninja-0123456789 --trace trace.json
                                     open it in ui.perfetto.dev

A build is all calls that one ninja, make, cmake or pip started, or that have one WARPCC_BUILD_ID.";

/// `warpcc report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// Report the last build (the default)
    #[arg(long, conflicts_with_all = ["build", "list"])]
    pub last: bool,
    /// Report the build with this ID
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    pub build: Option<String>,
    /// List the remembered builds, newest first
    #[arg(long, conflicts_with_all = ["output", "trace"])]
    pub list: bool,
    /// Write one HTML page that needs no network and no other file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Add up the traces that nvcc wrote with -fdevice-time-trace: the cost of phases, headers and templates
    #[arg(long, conflicts_with_all = ["list", "trace"])]
    pub device_trace: bool,
    /// Write a timeline for ui.perfetto.dev or chrome://tracing (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}
