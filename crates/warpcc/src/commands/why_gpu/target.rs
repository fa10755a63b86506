//! The GPU and the driver to judge for: as given, or this machine's.

use std::time::Duration;

use anyhow::bail;
use serde::Serialize;
use warpcc_fatbin::{DriverVersion, Gpu, Situation};
use warpcc_jit::JitSettings;

use super::args::WhyGpuArgs;
use crate::commands::jit::this_machine;
use crate::process_context::ProcessContext;

/// How long the driver may take to say which GPU there is.
const LONGEST: Duration = Duration::from_secs(60);

/// A GPU with its driver and the variables that change what it does.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The GPU.
    pub gpu: Gpu,
    /// Its name, where the driver says it.
    pub name: Option<String>,
    /// The driver; without one, one that knows all PTX is assumed.
    pub driver: Option<DriverVersion>,
    /// `CUDA_FORCE_PTX_JIT` is set here.
    pub force_jit: bool,
    /// `CUDA_DISABLE_PTX_JIT` is set here.
    pub disable_jit: bool,
}

impl Target {
    /// As the rules of a driver's choice want it.
    pub fn situation(&self) -> Situation {
        Situation {
            driver: self.driver,
            force_jit: self.force_jit,
            disable_jit: self.disable_jit,
        }
    }
}

/// Takes what is given, and asks the machine for a GPU that is not.
pub fn find(
    args: &WhyGpuArgs,
    settings: &JitSettings,
    context: &ProcessContext,
) -> anyhow::Result<Target> {
    // The variables of this shell say nothing about a container.
    let here = args.root.is_none();
    let mut target = Target {
        gpu: args.gpu.unwrap_or(Gpu::Next),
        name: None,
        driver: args.driver,
        force_jit: here && settings.force_jit,
        disable_jit: here && settings.disable_jit,
    };
    if args.gpu.is_some() {
        return Ok(target);
    }
    match this_machine(LONGEST, context) {
        Ok(found) => {
            target.gpu = Gpu::Known(found.number);
            target.name = Some(found.name);
            target.driver = target.driver.or(Some(found.driver));
            Ok(target)
        }
        Err(why) => bail!("{why}; say which GPU is meant: --gpu sm_90 or --gpu H100"),
    }
}
