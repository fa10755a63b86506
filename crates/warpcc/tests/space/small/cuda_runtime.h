// As much of CUDA's runtime header as most tests' sources need: types, launches and some functions, and none of the
// mathematics. The toolkit's own takes 65,000 lines, and each of nvcc's passes reads all of them. The declarations of the
// runtime's functions alone, and the C library's headers, are a quarter of the time of a compile with this one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include "crt/host_config.h"
#include "builtin_types.h"
#include "crt/host_defines.h"
#include "device_launch_parameters.h"

extern "C" {
// What sources take for granted, or get from the host's headers and call in kernels.
__host__ __device__ int printf(const char *, ...);
void exit(int) noexcept(true) __attribute__((noreturn));
char *getenv(const char *) noexcept(true);
__host__ __device__ int abs(int) noexcept(true);
__host__ __device__ void *malloc(size_t) noexcept(true);
__host__ __device__ void free(void *) noexcept(true);
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
// What sources call of the runtime.
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaMemcpy(void *, const void *, size_t, enum cudaMemcpyKind);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *, const void *);
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
