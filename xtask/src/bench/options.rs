//! The command line of a measurement, and the file that it compiles by default.

use std::path::PathBuf;

/// Thrust's sort and scan: over a thousand headers.
pub const SOURCE: &str = include_str!("../../bench/thrust.cu");

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct BenchOptions {
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
    /// Measure only these; nvcc is always measured. Some names stand alone: `fatbin-list` measures how fast a library is listed,
    /// compared with cuobjdump; `limits` draws what xtask/bench/limits.sh measured; `cluster` a project on workers of a cluster; `edits` a rebuild after an edit of one line;
    /// `remote` hits from servers; `remote-large` the memory for the transfer of a large object; `remote-small` the transfer of
    /// many small blobs
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub only: Vec<String>,
    /// The nvcc to use [default: from WARPCC_NVCC, PATH or CUDA_HOME, else a toolkit from PyPI]
    #[arg(long, value_name = "PATH")]
    pub nvcc: Option<PathBuf>,
    /// A warpcc that is already built (else this checkout's is, by cargo)
    #[arg(long, value_name = "PATH")]
    pub warpcc: Option<PathBuf>,
    /// A source file to compile in place of the Thrust file; it must need no other files of its project
    #[arg(long, value_name = "FILE")]
    pub source: Option<PathBuf>,
    /// With `--only fatbin-list`: the library to list (else NCCL's, from PyPI, 305 MB)
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}
