//! Parses the command line of `warpcc rtc`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use warpcc_rtc::Target;
use warpcc_rtc_build::Accessor;

const COMPILE_EXAMPLES: &str = "\
Examples:
  warpcc rtc compile scale.cu --name 'scale<float>' --arch sm_90 -o scale.cubin
  warpcc rtc compile scale.cu --name scale --arch compute_90 -D N=4 -I include

It prints the kernels with their names in the image, one per line. It needs no GPU.

Exit code: 0; 1 if the kernel does not compile; 2 if compiling could not be tried.";

const WHY_EXAMPLES: &str = "\
Examples:
  warpcc rtc why scale.cu --name 'scale<float>' --arch sm_90 -I include

It compiles nothing, and asks no shared cache.

Exit code: 0 if the kernel is cached; 1 if not; 2 if warpcc cannot tell.";

const WARM_EXAMPLES: &str = "\
Examples:
  warpcc rtc warm kernels.toml
  WARPCC_RTC_CACHE=/opt/kernels warpcc rtc warm kernels.toml    while an image is built
  WARPCC_RTC_RECORD=$PWD/recorded.toml python app.py          records what it asks for
  warpcc rtc warm recorded.toml --arch sm_80 --arch sm_90
  warpcc rtc warm kernels.toml --pack kernels.warpcc-pack      a file to ship in a wheel

docs/rtc.md describes the manifest.

Exit code: 0 if every kernel is stored; 1 if one does not compile, or cannot be stored; 2 if
compiling could not be tried.";

const EMBED_EXAMPLES: &str = "\
Examples:
  warpcc rtc embed include/lib/a.cuh --base-dir include -o kernels.warpcc-bundle
  warpcc rtc embed --lto functions.cu --arch 80 --arch 90 -o functions.warpcc-bundle
  warpcc rtc embed --header-dir include -o headers.warpcc-bundle --accessor mylib::headers
      --c-source headers.c --c-header mylib_headers.h --depfile headers.d

CMake projects call warpcc_rtc_embed, and Rust packages use the crate warpcc-rtc-build:
docs/rtc.md. Sources are compiled by nvcc through the cache.

Exit code: 0; 2 if a file cannot be read, or does not compile.";

/// The commands of `warpcc rtc`.
#[derive(Debug, Subcommand)]
pub enum RtcCommand {
    /// Compile a kernel through the cache, as a program would at run time
    Compile(CompileArgs),
    /// Compile all kernels of a manifest, so that programs find them in the cache
    Warm(RtcWarmArgs),
    /// Put headers and LTO-IR into one compressed file, for programs that compile kernels at run time
    Embed(EmbedArgs),
    /// Say whether a kernel is cached, and how it differs from kernels of the same name that were compiled before
    Why(RtcWhyArgs),
    /// Compile for `warm`, which starts this command
    #[command(hide = true)]
    Worker,
}

/// `warpcc rtc compile`.
#[derive(Debug, Args)]
#[command(after_help = COMPILE_EXAMPLES)]
pub struct CompileArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The file to write; by default FILE with the target's ending, in the working directory
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub with: WithArgs,
}

/// `warpcc rtc embed`.
#[derive(Debug, Args)]
#[command(after_help = EMBED_EXAMPLES)]
pub struct EmbedArgs {
    /// Headers, each with its path below a base folder as its name in #include
    #[arg(value_name = "HEADER", value_hint = ValueHint::FilePath)]
    pub headers: Vec<PathBuf>,
    /// A base folder; by default the working directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base_dir: Vec<PathBuf>,
    /// Take all headers below this folder, as with -I
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub header_dir: Vec<PathBuf>,
    /// Take the headers that this file names, one per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub headers_from: Option<PathBuf>,
    /// Compile this source to LTO-IR; a .fatbin or .ltoir is taken as it is
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub lto: Vec<PathBuf>,
    /// Compile for this architecture, such as 80 or 90a
    #[arg(long, value_name = "ARCH")]
    pub arch: Vec<String>,
    /// An option for nvcc: --option=-Iinclude
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    pub options: Vec<String>,
    /// The nvcc to use
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub nvcc: Option<PathBuf>,
    /// The bundle to write
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Write a rule of make with the files that were read and are not named here
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub depfile: Option<PathBuf>,
    /// The bundle's name in C++, such as mylib::headers; in C, mylib_headers
    #[arg(long, value_name = "NAME")]
    pub accessor: Option<Accessor>,
    /// Write a C source that has the bundle
    #[arg(long, value_name = "FILE", requires = "accessor", value_hint = ValueHint::FilePath)]
    pub c_source: Option<PathBuf>,
    /// Write the header for that source
    #[arg(long, value_name = "FILE", requires = "accessor", value_hint = ValueHint::FilePath)]
    pub c_header: Option<PathBuf>,
}

/// `warpcc rtc why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct RtcWhyArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub with: WithArgs,
}

/// Options that say what to compile.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// The kernel's source
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// A kernel by its name in C++; give the option once for each.
    #[arg(
        help = "A kernel by its name in C++, such as scale<float>; give the option once for each",
        long = "name",
        value_name = "KERNEL",
        required = true
    )]
    pub names: Vec<String>,
    /// sm_90 for machine code, compute_90 for PTX, lto_90 for LTO-IR
    #[arg(long, value_name = "TARGET")]
    pub arch: Target,
    /// Define a macro
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub defines: Vec<String>,
    /// Look for headers in this folder
    #[arg(short = 'I', long = "include", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub includes: Vec<PathBuf>,
    /// Text to put before the source
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub parameters: String,
    /// An option for NVRTC: --option=--std=c++20
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    pub options: Vec<String>,
}

/// `warpcc rtc warm`.
#[derive(Debug, Args)]
#[command(after_help = WARM_EXAMPLES)]
pub struct RtcWarmArgs {
    /// What to compile (TOML)
    #[arg(value_name = "MANIFEST", value_hint = ValueHint::FilePath)]
    pub manifest: PathBuf,
    /// Compile for this target, instead of the manifest's targets and the recorded GPUs
    #[arg(long, value_name = "TARGET")]
    pub arch: Vec<Target>,
    /// Write all images to this file as well, for programs to ship with
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pack: Option<PathBuf>,
    #[command(flatten)]
    pub with: WithArgs,
}

/// Options of both commands: the compiler, and the form of the output.
#[derive(Debug, Args)]
pub struct WithArgs {
    /// The NVRTC to use, a file or its folder; by default the one that a program would find here
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub nvrtc: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}
