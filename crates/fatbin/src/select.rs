//! The rules by which a driver chooses an image of a container for a GPU. No files are read here.
//!
//! `docs/fatbin.md` says for each rule whether it was seen on a GPU, is documented by NVIDIA, or is inferred;
//! `crates/fatbin/gpu` checks the predictions on a machine with a GPU.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::arch::{Arch, NotAnArch, Suffix};
use crate::image::{Image, ImageKind};

/// Systems on a chip: between them and cards, NVIDIA promises no binary compatibility.
const TEGRA: [u32; 6] = [53, 62, 72, 87, 101, 110];

/// A CUDA driver's version, which is the newest toolkit it knows: 13.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DriverVersion {
    /// 13 of 13.0.
    pub major: u16,
    /// 0 of 13.0.
    pub minor: u16,
}

/// The newest PTX ISA a driver compiles, by its CUDA version (PTX ISA release notes; 9.0 of 13.0,
/// 9.4 of 13.4 and 9.5 of 13.5 were seen).
const PTX_ISA: [((u16, u16), (u16, u16)); 11] = [
    ((9, 0), (6, 0)),
    ((9, 1), (6, 1)),
    ((9, 2), (6, 2)),
    ((10, 0), (6, 3)),
    ((10, 1), (6, 4)),
    ((10, 2), (6, 5)),
    ((12, 5), (8, 5)),
    ((12, 6), (8, 5)),
    ((12, 7), (8, 6)),
    ((12, 8), (8, 7)),
    ((12, 9), (8, 8)),
];

/// The first release whose `fatbinary` concatenates images. A driver of 13.0 does not load them
/// (seen); that one of 13.5 does is inferred from its toolkit writing them.
const CONCATENATES: DriverVersion = DriverVersion {
    major: 13,
    minor: 5,
};

impl DriverVersion {
    /// Whether it finds images that are compressed together with others.
    pub fn reads_concatenated(self) -> bool {
        self >= CONCATENATES
    }

    /// The newest PTX ISA version it compiles.
    pub fn newest_ptx(self) -> (u16, u16) {
        let known = PTX_ISA
            .iter()
            .find(|(driver, _)| *driver == (self.major, self.minor));
        match known {
            Some((_, isa)) => *isa,
            // 11.x has 7.x, 12.0 to 12.4 have 8.x, and 13.x has 9.x.
            None => (self.major.saturating_sub(4), self.minor),
        }
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a text names no driver version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a CUDA version: write 13.0, as nvidia-smi shows it")]
pub struct NotADriver(String);

impl FromStr for DriverVersion {
    type Err = NotADriver;

    fn from_str(text: &str) -> Result<Self, NotADriver> {
        let wrong = || NotADriver(text.to_owned());
        let (major, minor) = text.split_once('.').ok_or_else(wrong)?;
        let [major, minor] = [major, minor].map(str::parse::<u16>);
        match (major, minor) {
            // No driver of version 8 or earlier supports a GPU of today.
            (Ok(major @ 9..=99), Ok(minor)) => Ok(Self { major, minor }),
            _ => Err(wrong()),
        }
    }
}

/// A GPU to ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gpu {
    /// One with this compute capability, times ten: 90.
    Known(u32),
    /// A GPU that is newer than everything in the file: the next generation.
    Next,
}

/// A number above every architecture, for [`Gpu::Next`].
const NEXT: u32 = 9990;

impl Gpu {
    fn number(self) -> u32 {
        match self {
            Self::Known(number) => number,
            Self::Next => NEXT,
        }
    }
}

impl FromStr for Gpu {
    type Err = NotAnArch;

    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        match text {
            "next" => Ok(Self::Next),
            // A GPU has no letter; `sm_90a` means the GPU that runs it.
            other => Ok(Self::Known(other.parse::<Arch>()?.number)),
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(number) => f.pad(&format!("sm_{number}")),
            Self::Next => f.pad("next"),
        }
    }
}

impl Serialize for Gpu {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The settings of a process that change what a driver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Situation {
    /// The driver; without one, a driver that knows every PTX ISA is assumed.
    pub driver: Option<DriverVersion>,
    /// `CUDA_FORCE_PTX_JIT` or `CUDA_FORCE_JIT` is 1.
    pub force_jit: bool,
    /// `CUDA_DISABLE_PTX_JIT` or `CUDA_DISABLE_JIT` is 1.
    pub disable_jit: bool,
}

/// An error of the driver, by its number in `cuda.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CudaError {
    /// 209: nothing in the container is for this GPU.
    NoBinaryForGpu,
    /// 222: the PTX is newer than the driver.
    UnsupportedPtxVersion,
    /// 223: the PTX would have to be compiled, and that is switched off.
    JitDisabled,
}

impl CudaError {
    /// The number.
    pub fn number(self) -> u32 {
        match self {
            Self::NoBinaryForGpu => 209,
            Self::UnsupportedPtxVersion => 222,
            Self::JitDisabled => 223,
        }
    }

    /// The name in `cuda.h`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoBinaryForGpu => "CUDA_ERROR_NO_BINARY_FOR_GPU",
            Self::UnsupportedPtxVersion => "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            Self::JitDisabled => "CUDA_ERROR_JIT_COMPILATION_DISABLED",
        }
    }
}

/// The properties of an image that decide the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The kind of its content.
    pub kind: ImageKind,
    /// The architecture in its header.
    pub arch: Arch,
    /// PTX ISA version.
    pub version: Option<(u16, u16)>,
    /// Whether it is compressed together with others (`fatbinary --concat`).
    pub concatenated: bool,
}

impl From<&Image<'_>> for Candidate {
    fn from(image: &Image<'_>) -> Self {
        Self {
            kind: image.kind,
            arch: image.arch,
            version: image.code_version,
            concatenated: image.place.part.is_some() || image.kind == ImageKind::Concatenated,
        }
    }
}

/// The driver's choice from a container. Images are named by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// It loads this cubin as it is.
    Run(usize),
    /// It compiles this PTX, or finds it in its cache.
    Jit(usize),
    /// The driver fails. The image is the one that it chose and could not use.
    Fail(CudaError, Option<usize>),
}

/// Whether machine code for `arch` runs on `gpu`.
pub fn cubin_runs(arch: Arch, gpu: Gpu) -> bool {
    let Gpu::Known(gpu) = gpu else { return false };
    match arch.suffix {
        Suffix::Exact => arch.number == gpu,
        Suffix::Family => arch.number == gpu || arch.family_reaches(gpu),
        Suffix::None => {
            let same_major = arch.major() == Arch::plain(gpu).major();
            let tegra = TEGRA.contains(&arch.number) || TEGRA.contains(&gpu);
            arch.number == gpu || (same_major && arch.number <= gpu && !tegra)
        }
    }
}

/// Whether PTX for `arch` can be compiled for `gpu`.
pub fn ptx_compiles(arch: Arch, gpu: Gpu) -> bool {
    match arch.suffix {
        Suffix::Exact => gpu == Gpu::Known(arch.number),
        Suffix::Family => gpu == Gpu::Known(arch.number) || arch.family_reaches(gpu.number()),
        Suffix::None => arch.number <= gpu.number(),
    }
}

/// The driver's choice from a container of these images.
pub fn choose(images: &[Candidate], gpu: Gpu, situation: &Situation) -> Selection {
    // A driver skips images that it does not know: a container of nothing else is error 209.
    let skips = situation.driver.is_some_and(|d| !d.reads_concatenated());
    let numbered = || {
        let all = images.iter().enumerate();
        all.filter(move |(_, c)| !(skips && c.concatenated))
    };
    let cubins = numbered().filter(|(_, c)| {
        c.kind == ImageKind::Cubin && cubin_runs(c.arch, gpu) && !situation.force_jit
    });
    // The closest architecture, `a` before the rest, and of equals the first: `max_by_key` takes
    // the last, so the search runs backwards.
    let best = cubins
        .rev()
        .max_by_key(|(_, c)| (c.arch.number, c.arch.suffix == Suffix::Exact));
    if let Some((index, _)) = best {
        return Selection::Run(index);
    }
    let texts = numbered().filter(|(_, c)| c.kind == ImageKind::Ptx && ptx_compiles(c.arch, gpu));
    // As with cubins. The choice is final: an older text behind one that is too new is not tried.
    let best = texts
        .rev()
        .max_by_key(|(_, c)| (c.arch.number, c.arch.suffix == Suffix::Exact));
    let Some((index, chosen)) = best else {
        return Selection::Fail(CudaError::NoBinaryForGpu, None);
    };
    if situation.disable_jit {
        return Selection::Fail(CudaError::JitDisabled, Some(index));
    }
    let too_new = situation
        .driver
        .zip(chosen.version)
        .is_some_and(|(driver, version)| version > driver.newest_ptx());
    match too_new {
        true => Selection::Fail(CudaError::UnsupportedPtxVersion, Some(index)),
        false => Selection::Jit(index),
    }
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
