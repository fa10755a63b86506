// NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS count, and count once.
//#Env: NVCC_PREPEND_FLAGS=-DFIRST=1 -O1
//#Env: NVCC_APPEND_FLAGS=-DLAST=2 -Xptxas -v
//#Args: -c case.cu -o out.o -arch=sm_90
//#Stderr: ignore-timing
__global__ void k(int *x) { *x = FIRST + LAST; }
