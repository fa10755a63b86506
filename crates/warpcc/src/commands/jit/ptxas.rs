//! Finds the `ptxas` that measures and proves.

use std::ffi::OsStr;
use std::path::Path;

use warpcc_jit::Ptxas;

use crate::commands::nvcc::find_nvcc;
use crate::config::Config;
use crate::locate;
use crate::process_context::ProcessContext;

/// The `ptxas` that the user names, else the one next to nvcc, else the first in PATH.
pub fn find_ptxas(
    named: Option<&Path>,
    config: &Config,
    context: &ProcessContext,
) -> anyhow::Result<Ptxas> {
    if let Some(program) = named {
        return Ok(Ptxas::ask(program)?);
    }
    let nvcc = find_nvcc(None, config, context);
    let beside = nvcc.as_ref().ok().and_then(|nvcc| {
        let real = nvcc.canonicalize().ok()?;
        Some(real.with_file_name("ptxas")).filter(|file| file.is_file())
    });
    let path = context.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.as_os_str());
    let program = match beside {
        Some(program) => program,
        None => locate::compiler(OsStr::new("ptxas"), path, &context.ourselves).ok_or_else(|| {
            anyhow::anyhow!(
                "no ptxas next to nvcc or in PATH: name one with --ptxas, or a toolkit's nvcc with \
                 WARPCC_NVCC"
            )
        })?,
    };
    Ok(Ptxas::ask(&program)?)
}
