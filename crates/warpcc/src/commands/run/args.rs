//! The command line of `warpcc run`, as typed.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};

const RUN_EXAMPLES: &str = "\
Examples:
  warpcc run --graph plan.png -- -c kernel.cu -arch=all-major
  warpcc run --table times.csv --save parts -- -c kernel.cu
  warpcc run --trace trace.json -- -c kernel.cu    open it in ui.perfetto.dev";

/// `warpcc run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// Draw the commands and the files between them; the file's ending chooses dot, svg or png
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(GraphFile::from_name))]
    pub graph: Option<GraphFile>,
    /// Write one line per command: seconds, memory, files and their sizes (CSV)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub table: Option<PathBuf>,
    /// Keep all intermediate files in this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub save: Option<PathBuf>,
    /// Write the environment and the commands in full, like nvcc --verbose
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub verbose: Option<PathBuf>,
    /// Write a timeline for ui.perfetto.dev or chrome://tracing (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Show progress in one line of the terminal; nothing without a terminal
    #[arg(long)]
    pub progress: bool,
    /// Run nvcc's commands exactly, with nothing overlapped
    #[arg(long)]
    pub faithful: bool,
    /// Run one command after the other, in nvcc's order
    #[arg(long, conflicts_with = "jobs")]
    pub sequential: bool,
    /// Don't use or store cached results
    #[arg(long)]
    pub no_cache: bool,
    /// Run at most this many commands at once
    #[arg(short, long, value_name = "N", value_parser = job_count)]
    pub jobs: Option<NonZeroUsize>,
    /// The nvcc to use
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub nvcc: Option<PathBuf>,
    /// nvcc's arguments, with or without a compiler's name before them
    #[arg(trailing_var_arg = true, required = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

fn job_count(text: &str) -> Result<NonZeroUsize, &'static str> {
    let count = text.parse();
    count.map_err(|_| "not a whole number from 1")
}

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// Text for Graphviz.
    Dot,
    /// A drawing that scales and has tooltips.
    Svg,
    /// A picture.
    Png,
}

/// Where to draw a graph, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphFile {
    /// The file to write.
    pub path: PathBuf,
    /// The form its name asks for.
    pub format: GraphFormat,
}

impl GraphFile {
    fn from_name(name: OsString) -> Result<Self, &'static str> {
        let path = PathBuf::from(name);
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let format = match ending.to_ascii_lowercase().as_str() {
            "dot" | "gv" => GraphFormat::Dot,
            "svg" => GraphFormat::Svg,
            "png" => GraphFormat::Png,
            _ => return Err("the name must end in .dot, .svg or .png"),
        };
        Ok(Self { path, format })
    }
}
