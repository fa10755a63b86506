// cicc fails for one of two architectures: exit 1 where cudafe++ gives 2.
//#Exit: 1
//#Args: -MD -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
__host__ void host();
__global__ void k(int *x) {
#if __CUDA_ARCH__ >= 900
  host();
#endif
}
