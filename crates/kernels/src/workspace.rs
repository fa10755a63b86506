//! Memory for partial results. It is allocated and freed in a stream's order, from a pool of the launcher's own.
//!
//! The device's default pool gives all its memory back to the system whenever a thread waits for the device, unless the
//! program sets it otherwise: the next reduction then waits for memory to be mapped again, longer than it computes. That
//! setting is the program's, so this pool is another one.
#![expect(
    unsafe_code,
    reason = "memory pools are the driver's own objects; cudarc has no type for them"
)]

use std::mem;
use std::sync::{Arc, OnceLock};

use cudarc::driver::result::{self, mem_pool};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut as _, DriverError, sys};

/// The bytes that a pool keeps while no kernel runs. A plan takes 17 MB at most.
const KEPT: u64 = 64 << 20;

/// The memory of one GPU. Any thread may take from it.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// `None`: the device, or its driver, has no pools.
    pool: OnceLock<Option<Pool>>,
}

#[derive(Debug)]
struct Pool(sys::CUmemoryPool);

// SAFETY: a pool is a handle; the driver's functions take it from any thread.
unsafe impl Send for Pool {}
unsafe impl Sync for Pool {}

impl Pool {
    fn new(ordinal: usize) -> Result<Self, DriverError> {
        // SAFETY: all zeros are a value of each field: no handle to share, no limit.
        let mut properties: sys::CUmemPoolProps = unsafe { mem::zeroed() };
        properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.__bindgen_anon_1.id = i32::try_from(ordinal).unwrap_or(i32::MAX);
        let pool = Self(unsafe { mem_pool::create(&raw const properties) }?);
        let mut kept = KEPT;
        unsafe {
            mem_pool::set_attribute(
                pool.0,
                sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut kept).cast(),
            )
        }?;
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Kernels that are under way still keep their memory. At the program's end the driver may already be gone.
        let _ = unsafe { mem_pool::destroy(self.0) };
    }
}

/// Memory that is freed in its stream's order when this is dropped.
pub(crate) enum StreamMemory {
    Pooled {
        address: u64,
        stream: Arc<CudaStream>,
    },
    Other(CudaSlice<u8>, Arc<CudaStream>),
}

impl Workspace {
    /// Allocates this many bytes for later work on this stream. The stream's context is the thread's current one.
    pub(crate) fn take(
        &self,
        stream: &Arc<CudaStream>,
        bytes: usize,
    ) -> Result<StreamMemory, DriverError> {
        let pool = self
            .pool
            .get_or_init(|| Pool::new(stream.context().ordinal()).ok());
        let Some(pool) = pool else {
            let slice = unsafe { stream.alloc::<u8>(bytes) }?;
            return Ok(StreamMemory::Other(slice, stream.clone()));
        };
        let mut address = 0;
        unsafe {
            sys::cuMemAllocFromPoolAsync(&raw mut address, bytes, pool.0, stream.cu_stream())
        }
        .result()?;
        Ok(StreamMemory::Pooled {
            address,
            stream: stream.clone(),
        })
    }
}

impl StreamMemory {
    pub(crate) fn address(&mut self) -> u64 {
        match self {
            Self::Pooled { address, .. } => *address,
            Self::Other(slice, stream) => slice.device_ptr_mut(stream).0,
        }
    }
}

impl Drop for StreamMemory {
    fn drop(&mut self) {
        if let Self::Pooled { address, stream } = self {
            // An error would be that of earlier work, and the caller gets it there.
            let _ = unsafe { result::free_async(*address, stream.cu_stream()) };
        }
    }
}
