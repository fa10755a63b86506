// The check of embedded PTX fails: its failure is nvcc's, although nothing needs its output.
//#Args: -c case.cu -o out.o -gencode arch=compute_90,code=compute_90
//#Exit: 255
__global__ void k(int *x) { asm volatile("bogus.u32 %0;" :: "r"(*x)); }
