//! The command line of a measurement, and the file that it compiles by default.

use std::path::PathBuf;

/// Thrust's sort and scan: over a thousand headers.
pub const SOURCE: &str = include_str!("../../bench/thrust.cu");

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Options {
    /// The folder for the JSON file and the chart (docs/bench of this checkout)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The name of the two files, without an extension
    #[arg(long, default_value = "thrust")]
    pub name: String,
    /// Architectures to compile for
    #[arg(long, value_delimiter = ',', default_value = "80,90,100")]
    pub archs: Vec<String>,
    /// Rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Measure only these (nvcc, the measure of all, is always there); alone, `fatbin-list` measures
    /// how fast a library is listed, against cuobjdump, `cluster` a project on workers of a cluster, `edits` a rebuild
    /// after an edit of one line;
    /// `remote` measures hits from servers, `remote-large` the memory for a large object, `remote-small` the way of
    /// many small ones
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub only: Vec<String>,
    /// The nvcc to use (else WARPCC_NVCC, PATH, CUDA_HOME, a toolkit from PyPI)
    #[arg(long, value_name = "PATH")]
    pub nvcc: Option<PathBuf>,
    /// A warpcc that is already built (else this checkout's is, by cargo)
    #[arg(long, value_name = "PATH")]
    pub warpcc: Option<PathBuf>,
    /// Another source file than the Thrust one; it must stand alone
    #[arg(long, value_name = "FILE")]
    pub source: Option<PathBuf>,
    /// With `--only fatbin-list`: the library to list (else NCCL's, from PyPI, 305 MB)
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}
