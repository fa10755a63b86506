//! GPUs, contexts, streams and functions for C, in the driver's own types.
#![expect(
    unsafe_code,
    reason = "C's calling convention, and calls of the driver with what the caller says is a context or a stream"
)]

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crate::error::{Failure, Status};
use crate::ffi::{enter, free, given, given_mut, make, text};
use crate::images::Image;

/// The driver's stream: `CUstream` is a pointer to it, and so is the runtime's `cudaStream_t`.
#[derive(Debug)]
#[allow(non_camel_case_types, reason = "the driver's name")]
pub struct CUstream_st;

/// The driver's function: `CUfunction` is a pointer to it.
#[derive(Debug)]
#[allow(non_camel_case_types, reason = "the driver's name")]
pub struct CUfunc_st;

/// A GPU with a context.
#[derive(Debug)]
pub struct Device(pub(crate) warpcc_rtc::Device);

/// A kernel on a GPU, ready to launch. Its module stays loaded as long as it lives.
#[derive(Debug)]
pub struct Function {
    function: Arc<warpcc_rtc::Function>,
    context: Arc<CudaContext>,
    name: OnceLock<CString>,
}

/// A grid of blocks, and a block of threads.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Shape {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
}

impl Function {
    pub(crate) fn new(function: Arc<warpcc_rtc::Function>, device: &Device) -> Self {
        Self {
            function,
            context: device.0.context().clone(),
            name: OnceLock::new(),
        }
    }
}

impl Device {
    /// A stream of this device that the caller owns.
    ///
    /// # Safety
    /// `stream` is null (the default stream) or a live stream of this device's context, for as long as it is used.
    pub(crate) unsafe fn stream(&self, stream: *mut CUstream_st) -> Arc<CudaStream> {
        // SAFETY: as the caller says; work is ordered by the stream itself.
        unsafe { self.0.context().wrap_borrowed_stream(stream.cast()) }
    }
}

/// Opens the GPU number `ordinal` with its primary context, which the CUDA runtime, PyTorch and CuPy use too.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_device_open(
    ordinal: u32,
    device: Option<&mut MaybeUninit<*mut Device>>,
) -> Status {
    make(device, "device", || {
        let ordinal = usize::try_from(ordinal).unwrap_or(usize::MAX);
        Ok(Device(warpcc_rtc::Device::open(ordinal)?))
    })
}

/// Opens the GPU of this thread's current `CUcontext`, with that context. The caller keeps the context: it must live as long
/// as the device and every function loaded with it. Before it is destroyed, `warpcc_rtc_cache_unload_functions` must be
/// called for each cache that used the device.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_device_of_current_context(
    device: Option<&mut MaybeUninit<*mut Device>>,
) -> Status {
    make(device, "device", || {
        // cudarc would panic without a driver.
        warpcc_rtc::driver_version().map_err(warpcc_rtc::Error::from)?;
        let failed = |call: &'static str| move |error| Failure::driver(call, error);
        let current = result::ctx::get_current().map_err(failed("cuCtxGetCurrent"))?;
        let current = current.ok_or_else(|| {
            Failure::invalid(
                "context",
                "none is current on this thread: call cuCtxSetCurrent, or warpcc_rtc_device_open",
            )
        })?;
        let mut gpu = 0;
        // SAFETY: a live number for the answer; a context is current.
        unsafe { sys::cuCtxGetDevice(&raw mut gpu) }
            .result()
            .map_err(failed("cuCtxGetDevice"))?;
        // The driver's handles of GPUs are their numbers.
        let ordinal = usize::try_from(gpu).unwrap_or(0);
        let (mut flags, mut active) = (0, 0);
        // SAFETY: two live numbers for the answer.
        unsafe { sys::cuDevicePrimaryCtxGetState(gpu, &raw mut flags, &raw mut active) }
            .result()
            .map_err(failed("cuDevicePrimaryCtxGetState"))?;
        // To ask for one that does not exist would create it, which takes memory of the GPU.
        let primary = (active != 0).then(|| CudaContext::new(ordinal).ok());
        let primary = primary.flatten();
        if let Some(primary) = primary.filter(|primary| primary.cu_ctx() == current) {
            return Ok(Device(warpcc_rtc::Device::of_context(primary)?));
        }
        // The call above has made the primary context the thread's.
        // SAFETY: it is the context that was current.
        unsafe { result::ctx::set_current(current) }.map_err(failed("cuCtxSetCurrent"))?;
        // SAFETY: the context is live and of this GPU. It is not ours to destroy: see below.
        let context = unsafe { CudaContext::from_raw_context(ordinal, gpu, current) }
            .map_err(failed("the current context"))?;
        // cudarc destroys a context with its last owner; this one is never released, which costs some bytes.
        std::mem::forget(context.clone());
        Ok(Device(warpcc_rtc::Device::of_context(context)?))
    })
}

/// The GPU's compute capability, ten times major plus minor: 90.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_device_capability(
    device: Option<&Device>,
    capability: Option<&mut MaybeUninit<u32>>,
) -> Status {
    enter(|| {
        let found = given(device, "device")?.0.capability();
        given_mut(capability, "capability")?.write(found);
        Ok(())
    })
}

/// Loads an image and returns the function with this name in it (`warpcc_rtc_image_lowered_name`).
///
/// # Safety
/// Each pointer to a text is null, or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_device_load(
    device: Option<&Device>,
    image: Option<&Image>,
    lowered: *const c_char,
    function: Option<&mut MaybeUninit<*mut Function>>,
) -> Status {
    make(function, "function", || {
        let device = given(device, "device")?;
        let image = given(image, "image")?;
        // SAFETY: as the caller says.
        let lowered = unsafe { text(lowered, "lowered") }?;
        let module = device.0.load(lowered, image.compiled())?;
        Ok(Function::new(module.function(lowered)?.into(), device))
    })
}

/// Frees the device. A primary context is released; functions loaded with it stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_device_free(device: Option<Box<Device>>) {
    free(device);
}

/// The driver's `CUfunction`, which is valid as long as the function; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_function_cuda(function: Option<&Function>) -> *mut CUfunc_st {
    function.map_or(ptr::null_mut(), |function| {
        function.function.cuda().cu_function().cast()
    })
}

/// The function's name in its image, which is valid as long as the function; "" for null.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_function_name(function: Option<&Function>) -> *const c_char {
    function.map_or(c"".as_ptr(), |function| {
        let name = || CString::new(function.function.name()).unwrap_or_default();
        function.name.get_or_init(name).as_ptr()
    })
}

/// Starts a kernel on `stream` (null: the default stream) and does not wait for it. `arguments` contains a pointer to each
/// of the kernel's `count` arguments, as for `cuLaunchKernel`. Drivers from 12.4 on report how many a kernel takes, and any
/// other number is refused. The function's context becomes the thread's.
///
/// # Safety
/// The arguments match the kernel's in number and type; the stream belongs to the function's context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpcc_rtc_function_launch(
    function: Option<&Function>,
    shape: Option<&Shape>,
    stream: *mut CUstream_st,
    arguments: *const *mut c_void,
    count: usize,
) -> Status {
    enter(|| {
        let function = given(function, "function")?;
        let Shape {
            grid,
            block,
            shared,
        } = *given(shape, "shape")?;
        // SAFETY: as the caller says.
        let arguments = unsafe { crate::ffi::list(arguments, count, "arguments") }?;
        if let Some(index) = arguments.iter().position(|argument| argument.is_null()) {
            let problem = format!("the pointer to argument {index} is null");
            return Err(Failure::invalid("arguments", problem));
        }
        for (sizes, argument) in [(grid, "grid"), (block, "block")] {
            if sizes.contains(&0) {
                let problem = format!("{sizes:?} has a 0: every dimension has at least 1");
                return Err(Failure::invalid(argument, problem));
            }
        }
        let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
        if threads > 1024 {
            let problem =
                format!("{block:?} is {threads} threads, and no GPU has blocks of more than 1024");
            return Err(Failure::invalid("block", problem));
        }
        let bound = function.context.bind_to_thread();
        bound.map_err(|error| Failure::driver("the function's context", error))?;
        // The driver would read pointers beyond the given ones.
        if let Some(sizes) = function.function.parameter_sizes()
            && sizes.len() != count
        {
            let problem = format!(
                "{} takes {} argument(s), of {sizes:?} bytes, but {count} were given",
                function.function.name(),
                sizes.len()
            );
            return Err(Failure::invalid("count", problem));
        }
        let mut arguments = arguments.to_vec();
        // SAFETY: as the caller says.
        let launched = unsafe {
            result::launch_kernel(
                function.function.cuda().cu_function(),
                (grid[0], grid[1], grid[2]),
                (block[0], block[1], block[2]),
                shared,
                stream.cast(),
                &mut arguments,
            )
        };
        launched.map_err(|error| Failure::driver("cuLaunchKernel", error))
    })
}

/// Frees the function. Its module stays loaded while a cache or another function of it uses it.
#[unsafe(no_mangle)]
pub extern "C" fn warpcc_rtc_function_free(function: Option<Box<Function>>) {
    free(function);
}
