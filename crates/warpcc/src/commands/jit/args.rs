//! Parses the command line of `warpcc jit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use warpcc_fatbin::{DriverVersion, Gpu};
use warpcc_jit::Item;

const ADVISE_EXAMPLES: &str = "\
Examples:
  warpcc jit advise ./app libkernels.so --gpu sm_90
  warpcc jit advise site-packages/torch --gpu sm_100 --driver 13.0 --json

With a toolkit, ptxas measures the time; without one the figures are estimates, and are marked so.
The driver's variables are read from this environment: run it where the program will run.

Exit code: 0 if nothing is compiled, or all of it is stored; 1 if there is something to fix; 2 if a
file could not be read completely.";

const WARM_EXAMPLES: &str = "\
Examples:
  warpcc jit warm ./app libkernels.so
  CUDA_CACHE_PATH=/opt/cuda-cache warpcc jit warm ./app     while an image is built

warm loads every module that the driver would compile for this GPU, twice, in new processes. Then
it loads them once more with compiling switched off, so that only results in the cache load.

Exit code: 0 if everything is stored; 1 if something is not; 2 without a GPU, or if a file could not
be read completely.";

const CACHE_EXAMPLES: &str = "\
Exit code: 0; 1 if there is something to fix; 2 if it could not be cleared.";

const PROVE_EXAMPLES: &str = "\
Examples:
  warpcc jit prove ./app                      each PTX for its own architecture and the newest
  warpcc jit prove lib.so --gpu sm_90,sm_100
  warpcc jit prove ./app --load               also with this machine's driver

Exit code: 0 if every PTX was assembled; 1 if one was refused, or there is none; 2 if something
could not be tested.";

/// The commands of `warpcc jit`.
#[derive(Debug, Subcommand)]
pub enum JitCommand {
    /// Say what the first start on a GPU compiles, how long that takes, and whether the driver caches it
    Advise(AdviseArgs),
    /// Let the driver compile everything now, and check that it caches the results
    Warm(JitWarmArgs),
    /// Show the driver's cache: where it is, and how full
    Cache(CacheArgs),
    /// Check that all PTX can be assembled
    Prove(ProveArgs),
    /// Load modules, for `warm` and `prove`
    #[command(hide = true)]
    Load(LoadArgs),
}

/// The assembler to measure or prove with.
#[derive(Debug, Args)]
pub struct ToolArgs {
    /// The ptxas to use; by default the one next to nvcc
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub ptxas: Option<PathBuf>,
    /// Give up on a PTX after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
}

/// `warpcc jit advise`.
#[derive(Debug, Args)]
#[command(after_help = ADVISE_EXAMPLES)]
pub struct AdviseArgs {
    /// Programs and libraries; folders and wheels are searched
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// The GPUs that it will run on: sm_90, or next for the next generation
    #[arg(long, value_name = "GPU", value_delimiter = ',', required = true)]
    pub gpu: Vec<Gpu>,
    /// The driver's CUDA version, as nvidia-smi shows it; by default, a driver that accepts every PTX version
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<DriverVersion>,
    /// Estimate, even if there is a ptxas that could measure
    #[arg(long)]
    pub estimate: bool,
    /// The assembler.
    #[command(flatten)]
    pub tool: ToolArgs,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc jit warm`.
#[derive(Debug, Args)]
#[command(after_help = WARM_EXAMPLES)]
pub struct JitWarmArgs {
    /// Programs and libraries; folders and wheels are searched
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Which GPU, as the driver counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Give up on a module after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
    /// How modules are given to the driver
    #[arg(long, value_enum, default_value_t = By::Module, hide = true)]
    pub by: By,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc jit cache`.
#[derive(Debug, Args)]
#[command(after_help = CACHE_EXAMPLES)]
pub struct CacheArgs {
    /// Remove the driver's files there, and nothing else
    #[arg(long)]
    pub clear: bool,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc jit prove`.
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub struct ProveArgs {
    /// Programs and libraries; folders and wheels are searched
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Assemble for these; by default for the PTX's own architecture and the newest that ptxas knows
    #[arg(long, value_name = "GPU", value_delimiter = ',')]
    pub gpu: Vec<Gpu>,
    /// Also compile them with this machine's driver
    #[arg(long)]
    pub load: bool,
    /// Which GPU --load uses, as the driver counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// The assembler.
    #[command(flatten)]
    pub tool: ToolArgs,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// How a loading process gives modules to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// cuModuleLoadData
    Module,
    /// cuModuleLoadDataEx, with the compiler's complaints
    Logged,
    /// cuLibraryLoadData
    Library,
}

/// `warpcc jit load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Which GPU
    #[arg(long, default_value_t = 0)]
    pub device: u32,
    /// How
    #[arg(long, value_enum, default_value_t = By::Module)]
    pub by: By,
    /// Containers, or their images: 0,1.2
    #[arg(long, value_delimiter = ',')]
    pub items: Vec<Item>,
    /// The member of a wheel
    #[arg(long)]
    pub member: Option<String>,
    /// The file
    pub file: Option<PathBuf>,
}
