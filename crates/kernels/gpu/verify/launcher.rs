//! The library's own way to run a plan: cache, device, stream; and what it says of addresses that are none.

use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr as _};
use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{fused, unary};
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Plan, Tensor, WriteMode};
use warpcc_kernels::reduce::reduce;
use warpcc_kernels::{LaunchError, Launcher};
use warpcc_rtc::{CacheSettings, CallLimits, Compiler, Device, Environment, KernelCache};

type Check = fn(Option<&Path>) -> Result<(), String>;

/// By name.
pub const CHECKS: [(&str, Check); 3] = [
    (
        "an expression and a reduction in parts, from the cache",
        results,
    ),
    (
        "a host's pointer is refused, and the context stays usable",
        host_pointer,
    ),
    ("a million values summed twice give the same bits", repeats),
];

fn said(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

fn launcher(nvrtc: Option<&Path>) -> Result<(Launcher, Arc<CudaStream>), String> {
    let environment = Environment::of_process();
    let compiler = Compiler::find_with(nvrtc, &environment).map_err(|error| error.to_string())?;
    let settings = CacheSettings::from_environment(&environment);
    let device = Device::open(0).map_err(|error| error.to_string())?;
    let stream = device.context().new_stream().map_err(said)?;
    let cache = KernelCache::with(compiler, settings, None);
    Ok((Launcher::new(cache, device), stream))
}

fn run(launcher: &Launcher, plan: &Plan, stream: &Arc<CudaStream>) -> Result<(), String> {
    let done = launcher.run(plan, stream, &CallLimits::default());
    done.map_err(|error| error.to_string())?;
    stream.synchronize().map_err(said)
}

/// 2^20 + 3 values and their sum, on the device.
fn summed(launcher: &Launcher, stream: &Arc<CudaStream>) -> Result<(Vec<f32>, f32), String> {
    let n = (1u64 << 20) + 3;
    let x: Vec<f32> = (0..n)
        .map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 5.0)
        .collect();
    let on = stream.clone_htod(&x).map_err(said)?;
    let y = stream.alloc_zeros::<f32>(x.len()).map_err(said)?;
    let total = stream.alloc_zeros::<f32>(1).map_err(said)?;
    let at = |memory: &cudarc::driver::CudaSlice<f32>| memory.device_ptr(stream).0;
    let input = Tensor::new(DType::F32, &[n], at(&on));
    let middle = Tensor::new(DType::F32, &[n], at(&y));
    let expr = parse("relu(a * x + 1)").map_err(|error| error.to_string())?;
    let values = [("x", (&input).into()), ("a", 2.0.into())];
    let plan =
        fused(&expr, &values, &middle, WriteMode::Write).map_err(|error| error.to_string())?;
    run(launcher, &plan, stream)?;
    let output = Tensor::new(DType::F32, &[], at(&total));
    let plan = reduce("sum", &middle, None, &output, WriteMode::Write)
        .map_err(|error| error.to_string())?;
    if plan.launches.len() != 2 {
        return Err("a sum of a million is not found in parts".to_owned());
    }
    run(launcher, &plan, stream)?;
    let y = stream.clone_dtoh(&y).map_err(said)?;
    let total = stream.clone_dtoh(&total).map_err(said)?;
    for (x, y) in x.iter().zip(&y) {
        if *y != (2.0 * x + 1.0).max(0.0) {
            return Err(format!("{x}: {y}"));
        }
    }
    Ok((y, *total.first().ok_or("no sum")?))
}

fn results(nvrtc: Option<&Path>) -> Result<(), String> {
    let (launcher, stream) = launcher(nvrtc)?;
    let (values, total) = summed(&launcher, &stream)?;
    let want: f64 = values.iter().map(|v| f64::from(*v)).sum();
    if (f64::from(total) - want).abs() > 1e-6 * want {
        return Err(format!("{total}, expected {want}"));
    }
    Ok(())
}

fn host_pointer(nvrtc: Option<&Path>) -> Result<(), String> {
    let (launcher, stream) = launcher(nvrtc)?;
    let host = vec![0f32; 1024];
    let memory = stream.alloc_zeros::<f32>(1024).map_err(said)?;
    let output = Tensor::new(DType::F32, &[1024], memory.device_ptr(&stream).0);
    let input = Tensor::new(DType::F32, &[1024], host.as_ptr() as u64);
    let plan =
        unary("exp", &input, &output, WriteMode::Write).map_err(|error| error.to_string())?;
    match launcher.run(&plan, &stream, &CallLimits::default()) {
        Err(LaunchError::Address { .. }) => {}
        other => return Err(format!("{other:?}")),
    }
    let plan =
        unary("exp", &output, &output, WriteMode::Write).map_err(|error| error.to_string())?;
    run(&launcher, &plan, &stream)?;
    let ones = stream.clone_dtoh(&memory).map_err(said)?;
    if ones.iter().all(|one| *one == 1.0) {
        Ok(())
    } else {
        Err("exp(0) is not 1 afterwards".to_owned())
    }
}

fn repeats(nvrtc: Option<&Path>) -> Result<(), String> {
    let (launcher, stream) = launcher(nvrtc)?;
    let (_, first) = summed(&launcher, &stream)?;
    let (_, second) = summed(&launcher, &stream)?;
    if first.to_bits() == second.to_bits() {
        Ok(())
    } else {
        Err(format!("{first} and {second}"))
    }
}
