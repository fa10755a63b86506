// ptxas fails for the second architecture only: nothing of the first may be left.
//#Exit: 255
//#Args: -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
__global__ void k(int *x) {
#if __CUDA_ARCH__ >= 900
  asm volatile("bogus.u32 %0;" :: "r"(*x));
#endif
}
