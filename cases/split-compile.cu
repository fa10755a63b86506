// Reaches cicc, ptxas and the fat binary's own record of options.
//#Args: -split-compile 2 -c case.cu -o a.o -arch=sm_90
//#Args: --split-compile=0 -c case.cu -o b.o -arch=sm_90
//#Args: -split-compile=1 -c case.cu -o c.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
