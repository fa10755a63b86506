// Only the host's pass fails.
//#Exit: 1
//#Args: -MD -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
#ifndef __CUDA_ARCH__
#error not for the host
#endif
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
