//! Helpers for the tests: toolkits, binaries made by nvcc, the output of cuobjdump.

pub mod cuobjdump;

use std::path::Path;

use tempfile::TempDir;
use warpcc_fatbin::{Binary, BinaryInput, Depth, Listing, ReadLimits};
pub use warpcc_testkit::Toolkit;
pub use warpcc_testkit::toolkit::run;

/// Two kernels, a function that is not inlined, shared, constant and global memory, and a stack.
pub const SOURCE: &str = "
extern \"C\" __device__ __device_builtin__ void __syncthreads();
__device__ int table[64];
__constant__ float factor[4];
template <typename T> __device__ __noinline__ T slow(T x) { return x * x + table[(int)x & 63]; }
template <typename T> __global__ void scale(T *p, int n) {
    __shared__ T s[32];
    int a[100];
    for (int i = 0; i < n; i++) a[i % 100] = i * n;
    s[threadIdx.x & 31] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[n & 31] * factor[n & 3] + a[n % 100] + slow<T>(p[1]);
}
template __global__ void scale<float>(float *, int);
template __global__ void scale<double>(double *, int);
extern \"C\" __global__ void __launch_bounds__(64) plain(int *p) { *p = 1; }
int main() { plain<<<1, 1>>>(0); return 0; }
";

/// A folder with the source as `a.cu`.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.cu"), SOURCE).expect("written");
    folder
}

/// Opens a file that must open.
pub fn open(path: &Path) -> Binary {
    let input = BinaryInput::file(path);
    Binary::open(input, &ReadLimits::default()).expect("it opens")
}

/// Lists a file in which nothing may be wrong.
pub fn listed(path: &Path, depth: Depth) -> Listing {
    let listing = warpcc_fatbin::list(&open(path), depth, &ReadLimits::default());
    assert_eq!(listing.problems, [], "{}", path.display());
    listing
}
