// Options nvcc does not know are the host compiler's, as CMake writes them.
//#Args: -forward-unknown-to-host-compiler -fopenmp -Wno-unused -extended-lambda -use_fast_math -c case.cu -o a.o -arch=sm_90
//#Args: --forward-unknown-opts -ffast-math -c case.cu -o b.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
