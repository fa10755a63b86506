// Static device variables are named with the module id, which depends on the path.
//#Args: -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -rdc=true -c case.cu -o rdc.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -c ./case.cu -o dotted.o -arch=sm_90
static __device__ int counter;
__constant__ float table[4] = {1, 2, 3, 4};
static __global__ void count() { counter++; }
__global__ void k(float *x) { *x = table[threadIdx.x & 3]; }
void launch() { count<<<1, 1>>>(); }
