//! The kind of output, together with an architecture of the kind that it needs.
//!
//! NVRTC makes machine code for a real architecture (`sm_90`) only, and PTX or LTO-IR for a virtual one (`compute_90`). If
//! it is asked for a cubin of `compute_90`, it returns no bytes and no error. These types cannot express such a request.

use std::fmt;
use std::str::FromStr;

use warpcc_fatbin::{Arch, Gpu, cubin_runs, ptx_compiles};

/// A GPU's own architecture: `sm_90`, `sm_90a`, `sm_100f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RealArch(pub Arch);

/// An architecture of PTX: `compute_90`, `compute_90a`, `compute_100f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VirtualArch(pub Arch);

impl RealArch {
    /// Without a letter. `number` is ten times the major version plus the minor one: 90, 121.
    pub fn new(number: u32) -> Self {
        Self(Arch::plain(number))
    }
}

impl VirtualArch {
    /// Without a letter. `number` is ten times the major version plus the minor one: 90, 121.
    pub fn new(number: u32) -> Self {
        Self(Arch::plain(number))
    }
}

impl fmt::Display for RealArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

impl fmt::Display for VirtualArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compute_{}", self.0)
    }
}

/// Why a text names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a target: write sm_90 for machine code, compute_90 for PTX, lto_90 for LTO-IR"
)]
pub struct NotATarget(String);

impl FromStr for RealArch {
    type Err = NotATarget;

    /// Reads `sm_90a`.
    fn from_str(text: &str) -> Result<Self, NotATarget> {
        match text.parse() {
            Ok(Target::Cubin(arch)) => Ok(arch),
            _ => Err(NotATarget(text.to_owned())),
        }
    }
}

impl FromStr for VirtualArch {
    type Err = NotATarget;

    /// Reads `compute_90a`.
    fn from_str(text: &str) -> Result<Self, NotATarget> {
        match text.parse() {
            Ok(Target::Ptx(arch)) => Ok(arch),
            _ => Err(NotATarget(text.to_owned())),
        }
    }
}

/// The kind of output of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Machine code, which a GPU runs as it is.
    Cubin(RealArch),
    /// PTX, which the driver or [`crate::Linker`] compiles.
    Ptx(VirtualArch),
    /// LTO-IR, which [`crate::Linker`] optimises across images.
    LtoIr(VirtualArch),
}

impl Target {
    /// The best that an NVRTC which knows the architectures `known` can make for a GPU of compute capability
    /// `device` (ten times major plus minor): machine code where some runs on it, else PTX for the driver to compile.
    ///
    /// `None` for a GPU that is older than everything in `known`.
    pub fn best_for(device: u32, known: &[u32]) -> Option<Self> {
        let gpu = Gpu::Known(device);
        let newest = |runs: fn(Arch, Gpu) -> bool| {
            let fitting = known.iter().filter(|n| runs(Arch::plain(**n), gpu));
            fitting.max().copied()
        };
        newest(cubin_runs)
            .map(|number| Self::Cubin(RealArch::new(number)))
            .or_else(|| newest(ptx_compiles).map(|number| Self::Ptx(VirtualArch::new(number))))
    }

    /// The architecture, real or virtual.
    pub fn arch(self) -> Arch {
        match self {
            Self::Cubin(RealArch(arch)) => arch,
            Self::Ptx(VirtualArch(arch)) | Self::LtoIr(VirtualArch(arch)) => arch,
        }
    }

    /// The file name's ending that nvcc would give.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Cubin(_) => "cubin",
            Self::Ptx(_) => "ptx",
            Self::LtoIr(_) => "ltoir",
        }
    }

    /// The options that ask NVRTC for it.
    pub(crate) fn options(self) -> Vec<String> {
        match self {
            Self::Cubin(arch) => vec![format!("--gpu-architecture={arch}")],
            Self::Ptx(arch) => vec![format!("--gpu-architecture={arch}")],
            Self::LtoIr(arch) => vec![format!("--gpu-architecture={arch}"), "-dlto".to_owned()],
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin(arch) => arch.fmt(f),
            Self::Ptx(arch) => arch.fmt(f),
            Self::LtoIr(VirtualArch(arch)) => write!(f, "lto_{arch}"),
        }
    }
}

impl FromStr for Target {
    type Err = NotATarget;

    /// Reads `sm_90a`, `compute_90` and `lto_90`: what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, NotATarget> {
        let wrong = || NotATarget(text.to_owned());
        let arch = text.parse::<Arch>().map_err(|_| wrong())?;
        let all = [
            Self::Cubin(RealArch(arch)),
            Self::Ptx(VirtualArch(arch)),
            Self::LtoIr(VirtualArch(arch)),
        ];
        let same = |target: &Self| target.to_string() == text;
        all.into_iter().find(same).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_and_write_back() {
        for text in ["sm_90", "sm_90a", "compute_100f", "lto_75", "sm_121"] {
            assert_eq!(text.parse::<Target>().expect(text).to_string(), text);
        }
        for text in ["90", "9.0", "sm_90b", "compute_", "", "sm_+90", "SM_90"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        assert!("compute_90".parse::<RealArch>().is_err());
        assert!("sm_90".parse::<VirtualArch>().is_err());
    }

    #[test]
    fn the_best_for_a_gpu_is_code_that_runs_on_it() {
        let known = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];
        let best = |gpu| Target::best_for(gpu, &known).map(|target| target.to_string());
        assert_eq!(best(90).as_deref(), Some("sm_90"));
        assert_eq!(best(89).as_deref(), Some("sm_89"));
        // A newer minor version runs what was made for an older one.
        assert_eq!(
            Target::best_for(89, &[75, 80, 86, 90]).map(|t| t.to_string()),
            Some("sm_86".to_owned())
        );
        // Not across major versions, and not between cards and systems on a chip.
        assert_eq!(best(130).as_deref(), Some("compute_121"));
        assert_eq!(
            Target::best_for(87, &[75, 80, 86]).map(|t| t.to_string()),
            Some("compute_86".to_owned())
        );
        assert_eq!(best(70), None);
    }
}
