//! Intermediate steps, in the type that a kernel computes in.

use warpcc_kernels::dtype::DType;

/// An intermediate value in the compute type: infinite, or zero, sooner than in double.
pub(super) fn in_type(value: f64, work: DType) -> f64 {
    if work == DType::F32 {
        f64::from(value as f32)
    } else {
        value
    }
}
