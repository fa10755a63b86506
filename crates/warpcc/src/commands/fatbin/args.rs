//! Parses the command line of `warpcc fatbin`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use warpcc_fatbin::{CompressMode, DriverVersion, Gpu, Keep};

use crate::config::MaxSize;

const LIST_EXAMPLES: &str = "\
Examples:
  warpcc fatbin list libnccl.so.2             every image, and where the bytes are
  warpcc fatbin list --summary ./site-packages
  warpcc fatbin list --kernels kernel.o       registers, stack, shared memory
  warpcc fatbin list --json lib.so | jq '.[] | select(.kind==\"ptx\")'
  warpcc fatbin list --html lib.html lib.so

Exit code: 0, or 1 if something was damaged (the rest is listed), or 2 if nothing could be read.";

const EXTRACT_EXAMPLES: &str = "\
Examples:
  warpcc fatbin extract -o out lib.so                  everything
  warpcc fatbin extract -o out --kind ptx --arch sm_90 lib.so

Files are named FILE[.MEMBER].cNNN.iNN.TARGET.cubin|ptx|ltoir, by container and image as `list` numbers them.";

const DIFF_EXAMPLES: &str = "\
Exit code: 0 if nothing differs, 1 if something does, 2 if a file could not be read.";

const SIZE_EXAMPLES: &str = "\
Examples:
  warpcc fatbin size torch-2.9.whl                      by architecture, template, kernel, object
  warpcc fatbin size --budget 500M dist/*.whl           in CI: fails above
  warpcc fatbin size --duplicates --compression lib.so  what would make it smaller
  warpcc fatbin size --json lib.so | jq '.targets'

Device code is what fat binaries take in their files as installed: headers, images and padding.
Exit code: 0; 1 above the budget, or if something is damaged; 2 if nothing could be read.";

const THIN_EXAMPLES: &str = "\
Examples:
  warpcc fatbin thin --gpu sm_80,sm_90 libx.so -o thin/libx.so
  warpcc fatbin thin --keep sm_80,sm_90+ptx libx.so -o thin/libx.so
  warpcc fatbin thin --compress size --gpu sm_90 x-1.0-cp312-cp312-linux_x86_64.whl -o thin/

In a list, sm_90 keeps machine code, compute_90 PTX, sm_90+ptx both, lto_90 LTO-IR.
Exit code: 0, or 2 if the file is not one that can be rewritten safely.";

const CHECK_EXAMPLES: &str = "\
Examples:
  warpcc fatbin check lib.so --native sm_80,sm_90 --gpu next
      no kernel is compiled at start on sm_80 and sm_90, and all run on the next generation
  warpcc fatbin check lib.so --gpu sm_90 --driver 13.0

Exit code: 0 if all is as asked, 1 if not, 2 if a file could not be read or judged.";

/// `500M` as a number of bytes. 0 is a budget too: no device code at all.
fn size_in_bytes(text: &str) -> Result<u64, String> {
    let size = text.parse::<MaxSize>();
    size.map(|size| size.bytes().unwrap_or(0))
        .map_err(|_| "write a size such as 500M or 1.5GB".to_owned())
}

/// `warpcc fatbin`.
#[derive(Debug, Subcommand)]
pub enum FatbinCommand {
    /// List the images in programs, libraries, objects, wheels and folders
    List(ListArgs),
    /// Write images to files, uncompressed
    Extract(ExtractArgs),
    /// Compare the kernels of two builds
    Diff(DiffArgs),
    /// Show what takes the most device code, and what would make it smaller
    Size(SizeArgs),
    /// Remove unneeded images from a library, object, wheel or fat binary, or recompress them
    Thin(ThinArgs),
    /// Say what a driver will do on a GPU: run, compile (JIT), or fail
    Check(CheckArgs),
}

/// `warpcc fatbin list`.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    /// What to list; folders and wheels are searched
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Also list each image's kernels and their resources
    #[arg(long)]
    pub kernels: bool,
    /// Only the totals of each architecture
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub summary: bool,
    /// Write a JSON array of images
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Write one line per image, or per kernel with --kernels (CSV)
    #[arg(long)]
    pub csv: bool,
    /// Draw how many bytes each architecture and kernel takes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Write the same as an HTML page, with tables
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// A kind of image to extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WantedKind {
    /// Machine code
    Elf,
    /// PTX text
    Ptx,
    /// LTO-IR, as it is stored
    Lto,
}

/// `warpcc fatbin extract`.
#[derive(Debug, Args)]
#[command(after_help = EXTRACT_EXAMPLES)]
pub struct ExtractArgs {
    /// What to extract from
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// The folder to write to; created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Only images of this kind
    #[arg(long)]
    pub kind: Option<WantedKind>,
    /// Only images for this architecture, such as sm_90a
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<warpcc_fatbin::Arch>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

/// `warpcc fatbin diff`.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// The build before the change
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub before: PathBuf,
    /// The build after the change
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub after: PathBuf,
    /// Only images for this architecture, such as sm_90a
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<warpcc_fatbin::Arch>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc fatbin size`.
#[derive(Debug, Args)]
#[command(after_help = SIZE_EXAMPLES)]
pub struct SizeArgs {
    /// What to measure, added up; folders and wheels are searched
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Exit code 1 if there is more device code than this: 500M
    #[arg(long, value_name = "SIZE", value_parser = size_in_bytes)]
    pub budget: Option<u64>,
    /// Also find equal kernels in several containers, and what they cost
    #[arg(long)]
    pub duplicates: bool,
    /// Also compress with every mode, to measure it: takes some seconds for each 10 MB
    #[arg(long)]
    pub compression: bool,
    /// How many kernels, templates and objects to show
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub top: usize,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc fatbin thin`.
#[derive(Debug, Args)]
#[command(after_help = THIN_EXAMPLES)]
#[command(group(ArgGroup::new("change").args(["keep", "gpu", "compress"]).required(true).multiple(true)))]
pub struct ThinArgs {
    /// Keep these images: sm_80,sm_90+ptx
    #[arg(long, value_name = "LIST")]
    pub keep: Option<Keep>,
    /// Keep what a driver loads on these GPUs, or compiles for them: sm_90,next
    #[arg(long, value_name = "GPU", value_delimiter = ',')]
    pub gpu: Vec<Gpu>,
    /// Compress what is kept as nvcc -compress-mode does: size, balance, speed, none
    #[arg(long, value_name = "MODE")]
    pub compress: Option<CompressMode>,
    /// A shared library, program, object, static library, wheel or fat binary
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The file to write, or a folder for a file of the same name
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}

/// `warpcc fatbin check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// What to check
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// The GPUs it must run on, if need be compiled at start (JIT): sm_90, or next for the next generation
    #[arg(long, value_name = "GPU", value_delimiter = ',')]
    #[arg(required_unless_present = "native")]
    pub gpu: Vec<Gpu>,
    /// The GPUs it must run on without JIT
    #[arg(long, value_name = "GPU", value_delimiter = ',')]
    pub native: Vec<Gpu>,
    /// The driver's CUDA version, as nvidia-smi shows it; by default, a driver that accepts every PTX version
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<DriverVersion>,
    /// As with CUDA_FORCE_PTX_JIT=1
    #[arg(long)]
    pub force_ptx_jit: bool,
    /// As with CUDA_DISABLE_PTX_JIT=1
    #[arg(long)]
    pub disable_ptx_jit: bool,
    /// Name the kernels
    #[arg(long)]
    pub kernels: bool,
    /// Write JSON: an array with an object for each container and GPU
    #[arg(long)]
    pub json: bool,
}
