//! soak's command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::toolkit;

/// The histories to run, and for how long.
#[derive(Args)]
pub struct SoakOptions {
    /// How long to run
    #[arg(long, default_value_t = 5.0)]
    pub minutes: f64,
    /// The seed of the first history; each further history has the next number
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run at most this many histories
    #[arg(long)]
    pub histories: Option<u64>,
    /// Which tools run
    #[arg(long, value_enum, default_value_t = Which::Fake)]
    pub tools: Which,
    /// The warpcc to try; by default that of `cargo build --profile soak`
    #[arg(long)]
    pub warpcc: Option<PathBuf>,
    /// How many histories to run at once
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// The folder for failing histories and figures
    #[arg(long, default_value = "target/soak-found")]
    pub out: PathBuf,
    /// The folder in which the histories run, on the file system to test; if there are several, the workers take turns
    #[arg(long)]
    pub root: Vec<PathBuf>,
    /// The nvcc of real histories; if there are several, each history chooses one
    #[arg(long)]
    pub nvcc: Vec<PathBuf>,
    /// Each worker shrinks at most this many failures, and saves the others as they are
    #[arg(long, default_value_t = 8)]
    pub shrink: usize,
    /// Run case files instead
    #[arg(long, num_args = 1..)]
    pub replay: Vec<PathBuf>,
    /// Leave out steps of these kinds, and lines and words that contain these texts, because they are known to be wrong
    #[arg(long, value_delimiter = ',')]
    pub avoid: Vec<String>,
    /// Run the long tests that `cargo xtask test` leaves out, and no histories
    #[arg(long)]
    pub tests: bool,
    /// Print the history of each seed instead of running it; with --replay, warpcc's log
    #[arg(long)]
    pub show: bool,
    /// Switch off these guards one after the other, or `all` of them; guards joined by + are switched off together. The soak must
    /// notice each one, by a case (of `--replay`, or the guard's known case) or by histories within the given minutes
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<String>,
    /// The number of this process among the workers of another soak
    #[arg(long, hide = true, requires = "shared")]
    pub worker: Option<usize>,
    /// The folder that workers share
    #[arg(long, hide = true)]
    pub shared: Option<PathBuf>,
}

/// Which tools.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    Fake,
    Real,
    Both,
}

impl SoakOptions {
    /// The toolkits of real histories.
    pub fn toolkits(&self) -> Result<Vec<PathBuf>> {
        let mut named = self.nvcc.clone();
        if named.is_empty() {
            named.push(toolkit::find(toolkit::NEWEST)?);
        }
        let mut tops = Vec::new();
        for nvcc in named {
            let nvcc = nvcc.canonicalize()?;
            let top = nvcc.parent().and_then(Path::parent);
            tops.push(top.context("no toolkit around nvcc")?.to_owned());
        }
        Ok(tops)
    }
}
