//! Kernels as text: compiles them with NVRTC, stores the images for every process and machine, and loads them.
//!
//! - [`Compiler`] turns a [`CompileRequest`] into a [`Compiled`] image for a [`Target`]: no GPU, no driver, no cache.
//! - [`Linker`] turns images, LTO-IR and PTX into one cubin, [`FatbinMaker`] images into one fat binary.
//! - [`KernelCache`] compiles and links what it does not find in memory, in folders or in shared caches.
//! - [`Bundle`] has headers and LTO-IR that were embedded into the program when it was built.
//! - [`Device`] and [`KernelCache::get_function`] load them on a GPU; [`KernelCache::get_fatbin`] chooses the image that a
//!   driver would.
//!
//! Nothing of NVIDIA's is linked. Libraries are found when they are first needed; one that is missing is an
//! [`Error`] that lists what was tried.

mod bundles;
mod c_text;
mod cache;
mod call_limits;
mod compiler;
mod counts;
mod debug_sources;
mod deep_stack;
mod device;
mod diagnostics;
mod driver_error;
mod entry;
mod environment;
mod error;
mod event;
mod failure_dump;
mod fatbin_writer;
mod fatbins;
mod ffi;
mod float_environment;
mod found;
mod image_record;
mod include_names;
mod includes;
mod job_texts;
mod kernel;
mod keys;
mod library;
mod linker;
mod load;
mod lock;
mod memory;
mod memory_key;
mod nvfatbin;
mod nvjitlink;
mod nvrtc;
mod option_rules;
mod pack;
mod parameters;
mod product;
mod record;
mod request;
mod seen_files;
mod settings;
mod single_flight;
mod target;
mod tiers;
mod trace;
mod usage;
mod version;
mod workers;

pub use cache::{Image, KernelCache, ManyOptions, PartChange, Progress, Why};
pub use call_limits::{CallLimits, Cancel};
pub use compiler::{Compiled, Compiler};
pub use counts::Counts;
pub use device::{Device, Function, Module};
pub use diagnostics::SourceLocation;
pub use driver_error::DriverError;
pub use entry::read_entry;
pub use environment::{Environment, VARIABLES};
pub use error::{CompileFailure, Error, ErrorKind, LibraryError};
pub use event::{CacheEvent, Observer};
pub use fatbin_writer::{FatbinImage, FatbinMaker};
pub use found::Found;
pub use include_names::names_included;
pub use kernel::Kernel;
pub use library::driver_version;
pub use linker::{LinkRequest, Linked, Linker, Piece, PieceKind};
pub use nvrtc::BundledHeaders;
pub use pack::{Pack, PackError, write_pack};
pub use product::Product;
pub use request::{CompileRequest, PrecompiledHeaders, Text};
pub use settings::{CacheSettings, Tier};
pub use usage::Usage;
pub use version::Version;
pub use warpcc_budget::BoardPlace;
pub use warpcc_cache::{Key, Upstream};
pub use warpcc_fatbin::{Arch, DriverVersion};
pub use warpcc_rtc_bundle::{Bundle, BundleError, BundleMaker, ItemKind};
pub use workers::{WorkerCommand, serve_compilations};

/// The bundle that the package's build script made under this name with `warpcc_rtc_build::Embed::write`:
/// `Result<Bundle, BundleError>`.
///
/// ```ignore
/// let kernels = warpcc_rtc::embedded!("kernels")?;
/// request.bundles.push(kernels);
/// ```
#[macro_export]
macro_rules! embedded {
    ($name:literal) => {
        $crate::Bundle::open(
            include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".warpcc-bundle")).as_slice(),
        )
    };
}

pub use target::{NotATarget, RealArch, Target, VirtualArch};
