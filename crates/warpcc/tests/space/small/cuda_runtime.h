// As much of CUDA's runtime header as most tests' sources need: types, the runtime's functions and launches, and none
// of the mathematics. The toolkit's own takes 65,000 lines, and each of nvcc's passes reads all of them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include "crt/host_config.h"
#include "builtin_types.h"
#include "cuda_runtime_api.h"
#include "crt/host_defines.h"
#include "device_launch_parameters.h"
#include <stdlib.h>

extern "C" {
// What sources take for granted, or get from the host's headers and call in kernels.
__host__ __device__ int printf(const char *, ...);
__host__ __device__ void *memcpy(void *, const void *, size_t) noexcept(true);
__host__ __device__ void __assert_fail(const char *, const char *, unsigned, const char *) noexcept(true);
__host__ __device__ double sin(double) noexcept(true);
__host__ __device__ float sinf(float) noexcept(true);
__host__ __device__ float powf(float, float) noexcept(true);
__host__ __device__ float exp2f(float) noexcept(true);
__host__ __device__ float cbrtf(float) noexcept(true);
// What the code that cudafe++ makes of a kernel and of its launch calls.
__host__ __device__ unsigned __cudaPushCallConfiguration(dim3, dim3 = 1, size_t = 0, cudaStream_t = 0);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
}

static inline cudaError_t __cudaLaunchKernel_helper(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                                    size_t shared, cudaStream_t stream)
{
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

template <class T> static inline __host__ cudaError_t cudaMalloc(T **pointer, size_t size)
{
  return ::cudaMalloc((void **)pointer, size);
}
#pragma GCC diagnostic pop
