//! Compiles a kernel that includes an embedded header and calls an embedded function, and runs it where there is a GPU.

use std::error::Error;

use cudarc::driver::{LaunchConfig, PushKernelArg as _};
use warpcc_rtc::{CallLimits, Device, Found, KernelCache, driver_version};

const SOURCE: &str = r"
#include <geometry/point.cuh>
__device__ float twice_the_length(geometry::point p);
template <class T>
__global__ void lengths(T* x, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = twice_the_length({x[i], 4 * x[i] / 3});
}
";

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_90".to_owned()).parse()?;
    let mut common = warpcc_rtc::CompileRequest::new("", "", target);
    common.bundles.push(warpcc_rtc::embedded!("kernels")?);
    let cache = KernelCache::new()?.compiled_with(common);
    let limits = CallLimits::default();
    let image = cache.get_image("", "lengths<float>", SOURCE, target, &limits)?;
    let name = image.compiled.lowered_name("lengths<float>").unwrap_or("?");
    let found = match image.found {
        Found::Made => "compiled and linked",
        _ => "found",
    };
    println!("{name} for {target}: {found}");
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for library in ["libnvJitLink", "libnvrtc"] {
        let is = if maps.contains(library) { "loaded" } else { "not loaded" };
        println!("{library} is {is}");
    }
    if driver_version().is_err() {
        println!("not run: there is no GPU here");
        return Ok(());
    }
    run(&cache)
}

fn run(cache: &KernelCache) -> Result<(), Box<dyn Error>> {
    let gpu = Device::open(0)?;
    let lengths = cache.get_function("", "lengths<float>", SOURCE, &gpu, &CallLimits::default())?;
    let stream = gpu.context().default_stream();
    let values: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let mut x = stream.clone_htod(&values)?;
    let count = 1000_i32;
    let mut launch = stream.launch_builder(lengths.cuda());
    launch.arg(&mut x).arg(&count);
    // SAFETY: the kernel takes a pointer to floats and their number.
    unsafe { launch.launch(LaunchConfig::for_num_elems(1000)) }?;
    let result = stream.clone_dtoh(&x)?;
    for (value, length) in values.iter().zip(&result) {
        // 3, 4 and 5 are the sides of a triangle.
        let expected = 2.0 * 5.0 * value / 3.0;
        assert!((length - expected).abs() <= 1e-5 * expected, "{length} for {value}");
    }
    println!("ran on a GPU of compute capability {}: right", gpu.capability());
    Ok(())
}
