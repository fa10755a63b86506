// Without relocatable code an extern device function is ptxas's error.
//#Exit: 255
//#Args: -dw case.cu -o out.o -arch=sm_90
extern __device__ int nowhere(int);
__global__ void k(int *x) { *x = nowhere(1); }
