// The line PyTorch's extension builder writes.
//#Headers: whole
//#Args: --generate-dependencies-with-compile --dependency-output out.o.d -I{toolkit}/include -c -c {work}/case.cu -o {work}/out.o -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ --expt-relaxed-constexpr --compiler-options "'-fPIC'" -O3 -std=c++17 -U__CUDA_NO_HALF_OPERATORS__ --ptxas-options=-v -lineinfo --threads 4 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -DTORCH_API_INCLUDE_EXTENSION_H -DTORCH_EXTENSION_NAME=ext
//#Stderr: ignore-timing ignore-order
#include <cuda_fp16.h>
__global__ void k(__half *x) { *x = __hadd(*x, *x); }
