// -x decides the language, not the suffix.
//#File: kernel.cpp
//| __global__ void k(int *x) { *x = 1; }
//#File: host.cu
//| int host() { return 1; }
//#Args: -x cu -c kernel.cpp -o a.o -arch=sm_90
//#Args: -x=cu -c kernel.cpp -arch=sm_90
//#Args: --x cu -c kernel.cpp case.cu -arch=sm_90
//#Args: -x c++ -c host.cu -o host.o
//#Args: -c host.cu -o host-cu.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
