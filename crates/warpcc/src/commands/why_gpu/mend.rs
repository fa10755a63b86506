//! What mends a package that does not run, or runs late: versions and settings, from NVIDIA's tables.

use warpcc_fatbin::{DriverVersion, Gpu, first_toolkit, last_toolkit};

use super::judged::{Judged, OLD_DRIVER, PackageVerdict};
use super::target::Target;

const NO_BINARY: u32 = 209;
const NEWER_PTX: u32 = 222;
const JIT_DISABLED: u32 = 223;
/// Compiling for longer than this at a start is worth a setting, in seconds.
const LONG: f64 = 10.0;

/// Advice for a package, the surest first.
pub fn advice(judged: &Judged, target: &Target) -> Vec<String> {
    let mut advice = Vec::new();
    let has = |error: u32| judged.failures.iter().any(|failure| failure.error == error);
    if has(OLD_DRIVER) && judged.answer == PackageVerdict::Fails {
        let major = judged
            .toolkit
            .as_deref()
            .and_then(|t| t.split('.').next()?.parse().ok());
        if let Some(major) = major {
            advice.push(driver_of(DriverVersion { major, minor: 0 }));
        }
        if let Some(driver) = target.driver {
            advice.push(format!(
                "or a build of {} for CUDA {}",
                judged.package, driver.major
            ));
        }
    }
    if has(JIT_DISABLED) {
        advice.push("unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT".to_owned());
    }
    if has(NO_BINARY) && target.force_jit {
        advice.push("unset CUDA_FORCE_PTX_JIT and CUDA_FORCE_JIT".to_owned());
    } else if has(NO_BINARY) && judged.answer == PackageVerdict::Fails {
        advice.extend(other_build(judged, target.gpu));
    }
    if has(NEWER_PTX) {
        if let Some(driver) = judged.refused_ptx.and_then(DriverVersion::for_ptx) {
            advice.push(driver_of(driver));
            advice.push(format!(
                "or, on a data center GPU, the package cuda-compat-{}-{} with the installed driver",
                driver.major, driver.minor
            ));
        }
        if let Gpu::Known(number) = target.gpu {
            advice.push(format!(
                "or a build of {} with machine code for sm_{number}",
                judged.package
            ));
        }
    }
    if judged.answer == PackageVerdict::Compiles && judged.compile_seconds > Some(LONG) {
        advice.push(
            "store the results: CUDA_CACHE_MAXSIZE=4294967296, and CUDA_CACHE_PATH on a persistent disk; `warpcc jit warm` fills it"
                .to_owned(),
        );
        if let Gpu::Known(number) = target.gpu {
            advice.push(format!(
                "or a build of {} with machine code for sm_{number}",
                judged.package
            ));
        }
    }
    advice
}

fn driver_of(version: DriverVersion) -> String {
    match version.first_release() {
        Some(release) => format!("a driver of CUDA {version}: {release} or newer"),
        None => format!("a driver of CUDA {version} or newer"),
    }
}

/// A build for this GPU, and with which toolkit it can be made.
fn other_build(judged: &Judged, gpu: Gpu) -> Vec<String> {
    let package = &judged.package;
    let Gpu::Known(number) = gpu else {
        return vec![format!(
            "a build of {package} with PTX: TARGET+PTX, or code=compute_XY"
        )];
    };
    // Older than all that there is code for: support ended.
    let dropped = judged
        .numbers
        .first()
        .is_some_and(|oldest| number < *oldest);
    if dropped {
        return vec![match last_toolkit(number) {
            Some((major, minor)) => format!(
                "an older release of {package}, or a build with sm_{number} by CUDA {major}.{minor} or older: newer ones do not compile for it"
            ),
            None => format!("an older release of {package}, or a build with sm_{number}"),
        }];
    }
    vec![match first_toolkit(number) {
        Some((major, minor)) => format!(
            "a release or build of {package} by CUDA {major}.{minor} or newer with sm_{number} (the first that compiles for it)"
        ),
        None => format!("a release or build of {package} with sm_{number}"),
    }]
}
