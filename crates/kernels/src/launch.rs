//! Runs plans: gets kernels from the cache, checks addresses, and launches on a stream.
#![expect(
    unsafe_code,
    reason = "a launch passes addresses to a kernel; the driver is asked first whether it knows them"
)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError as CudaError, result, sys};

use crate::HEADER;
use crate::plan::{Argument, Plan, Which};
use crate::workspace::{StreamMemory, Workspace};
use warpcc_rtc::{
    CallLimits, CompileRequest, Device, Error, Function, KernelCache, RealArch, Target, Text,
};

/// Starts planned kernels on a GPU. Any thread may use it.
#[derive(Debug)]
pub struct Launcher {
    cache: KernelCache,
    workspace: Workspace,
    device: Device,
}

/// Why a plan was not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A kernel was not compiled or loaded.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// An address that the driver does not know. Nothing was started.
    #[error(
        "{which} is at address {address:#x}, which the driver does not know: pass a device pointer, not a host pointer or freed memory"
    )]
    Address {
        /// The array.
        which: Which,
        /// Its address.
        address: u64,
    },
    /// A call of the driver failed.
    #[error("{call}: {error:?}")]
    Driver {
        /// The call.
        call: &'static str,
        /// The driver's error.
        error: CudaError,
    },
}

fn refused(call: &'static str) -> impl Fn(CudaError) -> LaunchError {
    move |error| LaunchError::Driver { call, error }
}

/// The part that all planned kernels share: the library's device text before them.
fn common() -> CompileRequest {
    let mut common = CompileRequest::new("", "", Target::Cubin(RealArch::new(0)));
    common
        .preamble
        .push(Text::new("warpcc_kernels.cuh", HEADER));
    common
}

/// The requests of a launcher to its cache, kernel by kernel, on a GPU whose best target is `target`: for
/// [`KernelCache::get`] ahead of time, without a GPU.
pub fn requests(plan: &Plan, target: Target) -> Vec<CompileRequest> {
    let common = common();
    let kernels = plan.launches.iter();
    kernels
        .map(|launch| {
            common.for_kernel(
                launch.kernel.parameters(),
                launch.kernel.name(),
                launch.kernel.source(),
                target,
            )
        })
        .collect()
}

impl Launcher {
    /// Uses this cache. The library's device text is put before all of its kernels.
    pub fn new(cache: KernelCache, device: Device) -> Self {
        Self {
            cache: cache.compiled_with(common()),
            workspace: Workspace::default(),
            device,
        }
    }

    /// The cache.
    pub fn cache(&self) -> &KernelCache {
        &self.cache
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Starts a plan's kernels on a stream and does not wait for them.
    ///
    /// Shapes and types were checked when the plan was made. The caller must make sure that the arrays have the stated
    /// sizes, and exist until the stream is done.
    ///
    /// # Errors
    ///
    /// A kernel does not compile, an address is not on the device, or the driver refuses.
    pub fn run(
        &self,
        plan: &Plan,
        stream: &Arc<CudaStream>,
        limits: &CallLimits,
    ) -> Result<(), LaunchError> {
        let context = self.device.context();
        context.bind_to_thread().map_err(refused("the context"))?;
        for (which, address) in &plan.arrays {
            if !is_known(*address) {
                return Err(LaunchError::Address {
                    which: which.clone(),
                    address: *address,
                });
            }
        }
        // All are compiled before the first starts.
        let functions: Vec<Arc<Function>> = plan
            .launches
            .iter()
            .map(|launch| {
                self.cache
                    .get_function_of(&launch.kernel, &self.device, limits)
            })
            .collect::<Result<_, _>>()?;
        // It is freed in the stream's order, so after its last use.
        let mut workspace = match usize::try_from(plan.workspace).unwrap_or(usize::MAX) {
            0 => None,
            bytes => Some(
                self.workspace
                    .take(stream, bytes)
                    .map_err(refused("memory for partial results"))?,
            ),
        };
        let shared = workspace.as_mut().map_or(0, StreamMemory::address);
        for (launch, function) in plan.launches.iter().zip(&functions) {
            let arguments = launch.arguments.iter();
            let mut addresses: Vec<u64> = arguments
                .clone()
                .map(|argument| match argument {
                    Argument::Address(address) => *address,
                    Argument::Workspace(offset) => shared + offset,
                    Argument::Bytes(_) => 0,
                })
                .collect();
            // The driver reads them before it returns, and writes nothing.
            let mut pointers: Vec<*mut c_void> = arguments
                .zip(&mut addresses)
                .map(|(argument, address)| match argument {
                    Argument::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
                    _ => (&raw mut *address).cast(),
                })
                .collect();
            unsafe {
                result::launch_kernel(
                    function.cuda().cu_function(),
                    (launch.grid.0, launch.grid.1, 1),
                    (launch.block, 1, 1),
                    0,
                    stream.cu_stream(),
                    &mut pointers,
                )
            }
            .map_err(refused("cuLaunchKernel"))?;
        }
        Ok(())
    }
}

/// Whether the driver knows the address: device, managed or pinned memory.
fn is_known(address: u64) -> bool {
    let mut kind = MaybeUninit::<u32>::zeroed();
    let answer = unsafe {
        sys::cuPointerGetAttribute(
            kind.as_mut_ptr().cast(),
            sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            address,
        )
    };
    // Zero is no kind of memory. The driver returns it for a pointer of the host if the GPU can read all of the host's
    // memory.
    answer == sys::CUresult::CUDA_SUCCESS && unsafe { kind.assume_init() } != 0
}
