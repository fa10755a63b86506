// Warnings of both front ends, shown again on a hit.
//#Args: -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -c case.cu -o b.o -arch=sm_90 --diag-suppress 177,68 -diag-warn 186
//#Args: -c case.cu -o c.o -arch=sm_90 -w
__global__ void k(int *x) { int unused; unsigned u = -1; *x = (u < 0); }
