//! Calls of the driver: which GPU, kernels' parameters, launches, waiting for another stream.
#![expect(
    unsafe_code,
    reason = "launching passes addresses to a kernel, and contexts and streams are the program's own"
)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::{CudaStream, DriverError, result, sys};
use warpcc_rtc::{Device, Error, Function};

/// The shared memory of a block, in bytes, that needs no opt-in.
const USUAL_SHARED: u32 = 48 << 10;

static DEVICES: Mutex<Option<HashMap<usize, Device>>> = Mutex::new(None);

/// The GPU `ordinal`, opened once. The thread's current context stays what it was.
///
/// # Errors
/// No driver, no such GPU.
pub fn device(ordinal: usize) -> Result<Device, Error> {
    let mut known = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(device) = known.get(&ordinal) {
        return Ok(device.clone());
    }
    let before = is_there().then(current_context).flatten();
    let device = Device::open(ordinal)?;
    drop(Restored(before));
    known.insert(ordinal, device.clone());
    Ok(device)
}

/// The GPU of the thread's current context, else the first one.
pub fn current() -> usize {
    if !is_there() || current_context().is_none() {
        return 0;
    }
    let mut ordinal = 0;
    let answer = unsafe { sys::cuCtxGetDevice(&raw mut ordinal) };
    match answer {
        sys::CUresult::CUDA_SUCCESS => usize::try_from(ordinal).unwrap_or(0),
        _ => 0,
    }
}

/// The GPU that an address is on, where the driver knows it.
pub fn device_of(address: u64) -> Option<usize> {
    if !is_there() {
        return None;
    }
    let mut ordinal = 0i32;
    let answer = unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut ordinal).cast(),
            sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            address,
        )
    };
    match answer {
        sys::CUresult::CUDA_SUCCESS => usize::try_from(ordinal).ok(),
        _ => None,
    }
}

/// Whether there is a driver that can be asked.
fn is_there() -> bool {
    static FOUND: OnceLock<()> = OnceLock::new();
    if FOUND.get().is_some() {
        return true;
    }
    let found = unsafe { sys::is_culib_present() } && result::init().is_ok();
    if found {
        FOUND.get_or_init(|| ());
    }
    found
}

fn current_context() -> Option<sys::CUcontext> {
    result::ctx::get_current().ok().flatten()
}

/// Gives the thread its context back, on which PyTorch's and the runtime's current GPU depends.
struct Restored(Option<sys::CUcontext>);

impl Drop for Restored {
    fn drop(&mut self) {
        if !is_there() || current_context() == self.0 {
            return;
        }
        // The context that was current a moment ago; if it is gone, nothing can be done about it.
        let _ = unsafe { result::ctx::set_current(self.0.unwrap_or(ptr::null_mut())) };
    }
}

fn describe(call: &str, error: DriverError) -> String {
    let name = error.error_name();
    let name = name.map_or_else(
        |_| "an error".to_owned(),
        |n| n.to_string_lossy().into_owned(),
    );
    format!("{call}: {name} ({})", error.0 as u32)
}

/// Runs `work` with the GPU's context current.
pub fn with<T>(device: &Device, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let before = current_context();
    if before == Some(device.context().cu_ctx()) {
        return work();
    }
    let _restored = Restored(before);
    let bound = device.context().bind_to_thread();
    bound.map_err(|error| describe("the GPU's context", error))?;
    work()
}

/// A stream of another library, on this GPU.
pub fn stream(device: &Device, stream: u64) -> Arc<CudaStream> {
    // Whose stream it is keeps it alive during the call, which is all the time that this is held.
    unsafe {
        device
            .context()
            .wrap_borrowed_stream(stream as sys::CUstream)
    }
}

/// How many threads a block of this kernel may have.
pub fn most_threads(function: &Function) -> u32 {
    let most = function.cuda().max_threads_per_block().ok();
    most.and_then(|most| u32::try_from(most).ok())
        .unwrap_or(1024)
}

/// A kernel's launch.
pub struct Launch {
    /// Blocks.
    pub grid: (u32, u32, u32),
    /// Threads of a block.
    pub block: (u32, u32, u32),
    /// Bytes of shared memory besides what the kernel declares.
    pub shared: u32,
    /// The stream.
    pub stream: u64,
    /// Each parameter's bytes.
    pub values: Vec<Vec<u8>>,
    /// Streams that it waits for.
    pub waits: Vec<u64>,
}

/// Starts a kernel and does not wait for it.
///
/// # Errors
/// The driver's error, as text.
pub fn launch(function: &Function, device: &Device, mut launch: Launch) -> Result<(), String> {
    with(device, || {
        wait_for(device, launch.stream, &launch.waits)?;
        if launch.shared > USUAL_SHARED {
            let most = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(launch.shared).unwrap_or(i32::MAX);
            let set = function.cuda().set_attribute(most, bytes);
            let what = || format!("{} bytes of shared memory", launch.shared);
            set.map_err(|error| describe(&what(), error))?;
        }
        let mut pointers: Vec<*mut c_void> = launch
            .values
            .iter_mut()
            .map(|value| value.as_mut_ptr().cast())
            .collect();
        // The driver copies the values before it returns; that they are what the kernel takes was checked as far as
        // the driver tells.
        unsafe {
            result::launch_kernel(
                function.cuda().cu_function(),
                launch.grid,
                launch.block,
                launch.shared,
                launch.stream as sys::CUstream,
                &mut pointers,
            )
        }
        .map_err(|error| describe(&format!("launching {}", function.name()), error))
    })
}

/// Has `stream` wait for what is on `others` now.
///
/// # Errors
/// The driver's error, as text.
pub fn wait_for(device: &Device, stream: u64, others: &[u64]) -> Result<(), String> {
    for other in others.iter().filter(|other| **other != stream) {
        let (ours, theirs) = (self::stream(device, stream), self::stream(device, *other));
        let event = theirs.record_event(None);
        event
            .and_then(|event| ours.wait(&event))
            .map_err(|error| describe("waiting for the array's stream", error))?;
    }
    Ok(())
}
