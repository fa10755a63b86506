//! `warpcc jit`: what a driver compiles when a program starts; what its commands read, and the
//! exit codes they give.

mod advise;
mod args;
mod cache;
mod load;
mod prove;
mod warm;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use warpcc_fatbin::{Binary, Found, Limits, OpenError, find};
use warpcc_jit::Ptxas;

pub use args::JitCommand;
pub use load::load;

use crate::commands::find_nvcc;
use crate::config::{Config, ConfigError, variable};
use crate::launch::ProcessContext;
use crate::{fatbin, locate};

/// All is well.
const FINE: i32 = 0;
/// There is something to fix.
const TO_FIX: i32 = 1;
/// Something could not be read or tried.
const FAILED: i32 = 2;

/// Runs one of the commands; gives the exit code.
///
/// # Errors
/// What could not be done at all.
pub fn run(command: &JitCommand, config: &Config, around: &ProcessContext) -> anyhow::Result<i32> {
    match command {
        JitCommand::Advise(args) => advise::advise(args, config, around),
        JitCommand::Warm(args) => warm::warm(args, around),
        JitCommand::Cache(args) => cache::cache(args, around),
        JitCommand::Prove(args) => prove::prove(args, config, around),
        JitCommand::Load(args) => load(args),
    }
}

/// The settings. Our own cache is not used here, so that it has no place is no reason to fail: a
/// missing home is one of the things to find.
///
/// # Errors
/// A setting is wrong.
pub fn settings() -> Result<Config, ConfigError> {
    match Config::load(variable) {
        Err(ConfigError::NoHome) => {
            let nowhere = |name: &str| (name == "WARPCC_DIR").then(|| "/dev/null".into());
            Config::load(|name| variable(name).or_else(|| nowhere(name)))
        }
        other => other,
    }
}

/// The files that were named or found, mapped, in order, and those that could not be.
fn open_all(paths: &[PathBuf]) -> (Vec<Binary>, Vec<OpenError>) {
    let limits = Limits::default();
    let (inputs, mut errors) = find(paths);
    let mut binaries = Vec::new();
    for input in inputs {
        match Binary::open(input, &limits) {
            Ok(binary) => binaries.push(binary),
            Err(error) => errors.push(error),
        }
    }
    (binaries, errors)
}

/// What is in each of them.
fn contents(binaries: &[Binary]) -> Vec<Found<'_>> {
    let limits = Limits::default();
    binaries.par_iter().map(|b| b.contents(&limits)).collect()
}

/// Tells what could not be opened or read; says whether there was anything.
fn tell(errors: &[OpenError], files: &[(&Binary, Vec<warpcc_fatbin::Problem>)]) -> bool {
    let problems = files
        .iter()
        .flat_map(|(binary, problems)| problems.iter().map(|p| (&binary.input, p)));
    fatbin::tell(errors, problems)
}

/// The `ptxas` that is named, else the one beside nvcc, else the first in PATH.
fn find_ptxas(
    named: Option<&Path>,
    config: &Config,
    around: &ProcessContext,
) -> anyhow::Result<Ptxas> {
    if let Some(program) = named {
        return Ok(Ptxas::ask(program)?);
    }
    let nvcc = find_nvcc(None, config, around);
    let beside = nvcc.as_ref().ok().and_then(|nvcc| {
        let real = nvcc.canonicalize().ok()?;
        Some(real.with_file_name("ptxas")).filter(|file| file.is_file())
    });
    let path = around.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.as_os_str());
    let program = match beside {
        Some(program) => program,
        None => locate::compiler(OsStr::new("ptxas"), path, &around.ourselves).ok_or_else(|| {
            anyhow::anyhow!(
                "no ptxas next to nvcc or in PATH: name one with --ptxas, or a toolkit's nvcc with \
                 WARPCC_NVCC"
            )
        })?,
    };
    Ok(Ptxas::ask(&program)?)
}
