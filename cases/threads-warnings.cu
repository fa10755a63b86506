// Under -t nvcc's own order of diagnostics is chance: compared as sets of lines.
//#Args: -t 4 -c case.cu -o a.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Stderr: ignore-order
#warning from the preprocessor
__global__ void k(int *x) { int unused; }
