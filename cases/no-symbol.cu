// No external function: the module id ends in the process id, so nvcc itself differs
// from run to run where the id is used; here nothing uses it.
//#Args: -c case.cu -o out.o -arch=sm_90
__global__ static void k(int *x) { *x = 1; }
