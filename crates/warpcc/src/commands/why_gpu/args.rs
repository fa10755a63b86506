//! Parses the command line of `warpcc why-gpu`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use warpcc_fatbin::{DriverVersion, Gpu, gpu_named};

const EXAMPLES: &str = "\
Examples:
  warpcc why-gpu                                  this environment on this machine's GPU
  warpcc why-gpu torch flash-attn --gpu sm_120    will they run on the next machine?
  warpcc why-gpu --gpu H100 --driver 550.54       with the driver that is there
  warpcc why-gpu --root ./rootfs --gpu L4         a container that is not running

Needs neither a toolkit nor a GPU. Nothing is loaded, nothing is changed.
Exit code: 0; 1 if a package fails; 2 if one is not installed or cannot be read.";

/// `warpcc why-gpu`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhyGpuArgs {
    /// Only these packages; else all that have code for a GPU
    #[arg(value_name = "PACKAGE")]
    pub packages: Vec<String>,
    /// Look for site-packages below this folder, such as a container's root
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "python")]
    pub root: Option<PathBuf>,
    /// The environment of this Python; else the active one
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
    /// The GPU, by architecture or name: sm_90, H100; else this machine's
    #[arg(long, value_name = "GPU", value_parser = gpu)]
    pub gpu: Option<Gpu>,
    /// The driver, by CUDA version or own number: 13.0, 550.54; else this machine's
    #[arg(long, value_name = "VERSION", value_parser = driver)]
    pub driver: Option<DriverVersion>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

fn gpu(text: &str) -> Result<Gpu, String> {
    match (text.parse::<Gpu>(), gpu_named(text)) {
        // `L4` and `T4` are names, which the other form never is.
        (_, Some(number)) => Ok(Gpu::Known(number)),
        (Ok(gpu), None) => Ok(gpu),
        (Err(_), None) => Err(format!(
            "warpcc does not know a GPU named {text:?}: write its architecture, such as sm_90 (nvidia-smi --query-gpu=compute_cap)"
        )),
    }
}

/// A CUDA version, or a driver's own number, which is never below 300.
fn driver(text: &str) -> Result<DriverVersion, String> {
    let first = text.split('.').next().unwrap_or_default();
    match first.parse::<u16>() {
        Ok(branch @ 300..) => DriverVersion::of_release(branch).ok_or_else(|| {
            format!("warpcc does not know driver branch {branch}: write its CUDA version, such as 13.0 (nvidia-smi shows it)")
        }),
        _ => text
            .parse()
            .map_err(|error: warpcc_fatbin::NotADriver| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_and_drivers_as_people_write_them() {
        for text in ["sm_90", "9.0", "H100", "h200"] {
            assert_eq!(gpu(text), Ok(Gpu::Known(90)), "{text}");
        }
        assert_eq!(gpu("next"), Ok(Gpu::Next));
        assert!(gpu("banana").is_err());
        for (text, version) in [("13.0", "13.0"), ("550.54.14", "12.4"), ("550", "12.4")] {
            assert_eq!(driver(text).map(|d| d.to_string()).as_deref(), Ok(version));
        }
        assert!(driver("350.1").is_err() && driver("999.1").is_err() && driver("new").is_err());
    }
}
