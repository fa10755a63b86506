// A device link of a file that asks for a symbol no one has.
//#Args: -dc case.cu -o case.o -arch=sm_90
//#Args: -dlink case.o -o out.o -arch=sm_90 -L{toolkit}/lib
//#Exit: 255
extern __device__ int nowhere(int);
__global__ void k(int *x) { *x = nowhere(1); }
