//! What is known of a package, as it is printed and as JSON has it.

use std::collections::BTreeSet;

use serde::Serialize;

/// `cudaErrorInsufficientDriver`.
pub const OLD_DRIVER: u32 = 35;

/// What happens to a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageVerdict {
    /// Everything in it runs as it is.
    Native,
    /// Something is compiled when it is first needed; all runs.
    Compiles,
    /// Some kernels are not for this GPU. Libraries that choose at run time have such.
    Partly,
    /// Nothing in it runs.
    Fails,
    /// It holds no code for a GPU.
    NoDeviceCode,
    /// Its files cannot be read.
    Unreadable,
}

/// Containers by what the driver does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Run as they are.
    pub run: usize,
    /// Compiled.
    pub compile: usize,
    /// Not loaded.
    pub fail: usize,
}

/// One reason why something does not load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadFailure {
    /// The error's number in `cuda.h`.
    pub error: u32,
    /// Its name there.
    pub name: String,
    /// In how many containers.
    pub containers: usize,
    /// In a sentence.
    pub why: String,
    /// A kernel that it is about.
    pub kernel: Option<String>,
}

/// What is known of a package.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// What happens to it.
    pub answer: PackageVerdict,
    /// Its containers.
    pub containers: Counts,
    /// For what there is code: `sm_80`, `compute_90`.
    pub targets: Vec<String>,
    /// The newest toolkit that made its code, as far as images say.
    pub toolkit: Option<String>,
    /// Seconds of one core for all that is compiled: an estimate.
    pub compile_seconds: Option<f64>,
    /// Why something does not load.
    pub failures: Vec<LoadFailure>,
    /// How to fix it, the surest way first.
    pub mend: Vec<String>,
    /// Files that could not be read, or not as a whole.
    pub problems: Vec<String>,
    /// The newest PTX that the driver refuses.
    #[serde(skip)]
    pub refused_ptx: Option<(u16, u16)>,
    /// Numbers of the architectures that there is machine code for.
    #[serde(skip)]
    pub numbers: BTreeSet<u32>,
}
