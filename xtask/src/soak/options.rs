//! soak's command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::toolkit;

/// The histories to run, and for how long.
#[derive(Args)]
pub struct Options {
    /// How long
    #[arg(long, default_value_t = 5.0)]
    pub minutes: f64,
    /// Where the first history starts; the next has the next number
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// No more histories than this
    #[arg(long)]
    pub histories: Option<u64>,
    /// Which tools run
    #[arg(long, value_enum, default_value_t = Which::Fake)]
    pub tools: Which,
    /// The warpcc to try; that of `cargo build --profile soak` when not given
    #[arg(long)]
    pub warpcc: Option<PathBuf>,
    /// Histories at once
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Where failing histories and figures go
    #[arg(long, default_value = "target/soak-found")]
    pub out: PathBuf,
    /// Where the histories run: a folder on the file system that is meant; of several, the workers take turns
    #[arg(long)]
    pub root: Vec<PathBuf>,
    /// The nvcc of real histories; of several, each history chooses
    #[arg(long)]
    pub nvcc: Vec<PathBuf>,
    /// Each worker shrinks no more failures than this; the others are saved as they are
    #[arg(long, default_value_t = 8)]
    pub shrink: usize,
    /// Run case files instead
    #[arg(long, num_args = 1..)]
    pub replay: Vec<PathBuf>,
    /// Leave out steps of these kinds, and lines and words with these texts: what is known to be wrong already
    #[arg(long, value_delimiter = ',')]
    pub avoid: Vec<String>,
    /// Print the history of each seed instead of running it; with --replay, warpcc's log
    #[arg(long)]
    pub show: bool,
    /// Switch off guards, one after the other, those joined by + together, or `all` that there are; each has to be found
    /// out, by a case (of `--replay`, or the one that is known), or by histories within the minutes given
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<String>,
    /// Which worker of another soak this process is
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

impl Options {
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
