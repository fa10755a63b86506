// NVCC_CCBIN names the host compiler.
//#Env: NVCC_CCBIN=/usr/bin/g++-12
//#Args: -c case.cu -o out.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
