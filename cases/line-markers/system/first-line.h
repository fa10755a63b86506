static __device__ float first = 1;
