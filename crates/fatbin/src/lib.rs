//! Reads CUDA binaries: containers, images, kernels, and what a driver will do with them.
//!
//! The files come from others, so everything in a file is checked before it is used: lengths against the bytes that
//! exist, sizes against [`ReadLimits`]. Damage becomes a [`Problem`] with its place, and the rest of the file is still
//! read. Needs no CUDA toolkit, prints nothing, and reads no environment. The format and the driver's rules are
//! described in `docs/fatbin.md`.

mod ar;
mod arch;
mod attributes;
mod bytes;
mod compress;
mod concatenated;
mod container;
mod cubin;
mod demangle;
mod diff;
mod error;
mod gpus;
mod host;
mod host_pe;
mod image;
mod inspect;
mod kernels;
mod listing;
mod names;
mod payload;
mod ptx;
mod record;
mod releases;
mod rewritten;
mod select;
mod selection;
mod size;
mod source;
mod thin;
mod thin_archive;
mod thin_elf;
mod thin_pointers;
mod thin_sections;
mod thin_segments;
mod thin_wheel;
mod toolkit;
mod units;
mod verdict;
mod work;

pub use arch::{Arch, NotAnArch, Suffix};
pub use bytes::Bytes;
pub use compress::{CompressMode, NotAMode};
pub use container::{Container, FoundImages, Region, Section};
pub use cubin::Cubin;
pub use demangle::{demangle, template_family};
pub use diff::{Changed, FatbinDifference, KernelId, NumberChange, Total, diff};
pub use error::{Flaw, Problem, ReadLimits};
pub use gpus::gpu_named;
pub use host::{Format, read};
pub use image::{Image, ImageFlags, ImageKind, ImagePlace, Method};
pub use inspect::Inside;
pub use kernels::{ImageFunction, Usage};
pub use listing::{Depth, FunctionRow, ImageRow, Listing, list};
pub use ptx::ptx_kernels;
pub use releases::{first_toolkit, last_toolkit};
pub use rewritten::Rewritten;
pub use select::{
    Candidate, CudaError, DriverVersion, Gpu, NotADriver, Selection, Situation, choose, cubin_runs,
    ptx_compiles,
};
pub use selection::{Keep, NotAKeep};
pub use size::{
    CompressionSize, ContainerSize, Duplicates, FileSize, FunctionSize, SameFunction, SizeOptions,
    SizeReport, SizeSum, TargetSize,
};
pub use source::{Binary, BinaryInput, FatbinError, OpenFailure, find};
pub use thin::{Refusal, Thinned, thin, thin_bytes};
pub use thin_wheel::{NotThinned, ThinnedMember, ThinnedWheel, thin_wheel};
pub use verdict::{LoadOutcome, Verdict, Verdicts, judge};
pub use work::work_done;
