// Keyed by what it resolves to, which differs between toolkits.
//#Args: -c case.cu -o out.o -arch=all-major
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
