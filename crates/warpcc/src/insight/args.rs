//! What `warpcc report`, `monitor` and `doctor` are told on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

const REPORT_EXAMPLES: &str = "\
Examples:
  warpcc report                      the last build, in short
  warpcc report -o build.html        all of it, as one HTML page
  warpcc report --list               the remembered builds
  warpcc report --build ninja-0123456789 --trace trace.json
                                     open it in ui.perfetto.dev

A build is what one ninja, make, cmake or pip started, or what WARPCC_BUILD_ID names.";

/// `warpcc report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// The last build (the default)
    #[arg(long, conflicts_with_all = ["build", "list"])]
    pub last: bool,
    /// This build
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
    /// Write a timeline for ui.perfetto.dev or chrome://tracing (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}

const MONITOR_NOTE: &str = "\
Without a terminal, or with --plain, it writes lines until nothing runs or waits.
Finished tasks are counted from the start of the monitor.";

/// `warpcc monitor`.
#[derive(Debug, Args)]
#[command(after_help = MONITOR_NOTE)]
pub struct MonitorArgs {
    /// Seconds between refreshes
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = interval)]
    pub interval: Duration,
    /// Write plain lines even on a terminal
    #[arg(long)]
    pub plain: bool,
}

/// A tenth of a second is as fast as anybody reads, and looking costs something.
fn interval(text: &str) -> Result<Duration, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("must be a number of seconds from 0.1 to 3600"),
    }
}

const DOCTOR_NOTE: &str = "\
Exit code: 0 when there is nothing worse than a note, 1 with a warning, 2 with an error.

It checks the nvcc that is found, the host compiler and wrappers around it, the settings, the
cache's folder, the budget and the last build. It cannot see a launcher that CMake puts before nvcc.";

/// `warpcc doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_NOTE)]
pub struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}
