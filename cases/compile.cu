// The smallest thing: one file, one architecture.
//#Headers: whole
//#Args: -c case.cu -o out.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
