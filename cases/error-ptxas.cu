// ptxas fails on inline assembly: exit 255, and the text names the keep folder's file.
//#Exit: 255
//#Args: -MD -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -cubin case.cu -o out.cubin -arch=sm_90
__global__ void k(int *x) { asm volatile("bogus.u32 %0;" :: "r"(*x)); }
