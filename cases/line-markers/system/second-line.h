
__device__ float second = 1;
