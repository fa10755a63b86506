//! Reads the number and the sizes of a kernel's parameters from the driver.
#![expect(
    unsafe_code,
    reason = "cudarc has no safe form of cuFuncGetParamInfo and cuDriverGetVersion"
)]

use cudarc::driver::{CudaFunction, sys};

/// The first driver that reports them (`cuFuncGetParamInfo`), in the form of `cuDriverGetVersion`.
const TELLS: i32 = 12_040;

/// The sizes in bytes; `None` if the driver does not report them.
pub(crate) fn sizes(function: &CudaFunction) -> Option<Vec<usize>> {
    let mut version = 0;
    // SAFETY: it writes one number.
    let answer = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    if answer != sys::CUresult::CUDA_SUCCESS || version < TELLS {
        return None;
    }
    let handle = function.cu_function();
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: the driver has the call, and writes two numbers.
        let answer =
            unsafe { sys::cuFuncGetParamInfo(handle, sizes.len(), &raw mut offset, &raw mut size) };
        match answer {
            sys::CUresult::CUDA_SUCCESS => sizes.push(size),
            // There are no more parameters.
            sys::CUresult::CUDA_ERROR_INVALID_VALUE => return Some(sizes),
            _ => return None,
        }
    }
}
