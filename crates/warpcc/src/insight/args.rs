//! What `warpcc report`, `monitor` and `doctor` are told on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

const REPORT_EXAMPLES: &str = "\
Examples:
  warpcc report                      the last build, in short
  warpcc report -o build.html        all of it, as a page for a browser
  warpcc report --list               the builds that are remembered
  warpcc report --build ninja-0123456789 --trace trace.json
                                     open it in ui.perfetto.dev

A build is what one ninja, make, cmake or pip started, or what WARPCC_BUILD_ID names.";

/// `warpcc report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// Of the last build, which is also what is meant when nothing is said
    #[arg(long, conflicts_with_all = ["build", "list"])]
    pub last: bool,
    /// Of this build
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    pub build: Option<String>,
    /// List the builds that are remembered, the newest first
    #[arg(long, conflicts_with_all = ["output", "trace"])]
    pub list: bool,
    /// Write a page for a browser, which needs no network and no other file
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
What has finished is counted from when the monitor was started.";

/// `warpcc monitor`.
#[derive(Debug, Args)]
#[command(after_help = MONITOR_NOTE)]
pub struct MonitorArgs {
    /// Look this often
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = interval)]
    pub interval: Duration,
    /// Write plain lines, on a terminal as well
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

It looks at the nvcc that is found, the host compiler and wrappers around it, the settings, the
cache's folder, the budget and the last build. A launcher that CMake puts before nvcc is not seen.";

/// `warpcc doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_NOTE)]
pub struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}
