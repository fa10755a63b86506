// The output's folder is not there.
//#Exit: 1
//#Fallback: an output is not a plain file
//#Args: -c case.cu -o nowhere/out.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
