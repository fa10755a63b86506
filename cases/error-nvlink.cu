// nvlink misses a symbol: exit 255.
//#Exit: 255
//#Args: -rdc=true case.cu -o prog -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -L{toolkit}/lib
extern __device__ int nowhere(int);
__global__ void k(int *x) { *x = nowhere(1); }
int main() { return 0; }
