// nvcc does not make the keep folder: every tool that writes there fails.
//#Args: -keep -keep-dir nowhere -c case.cu -o out.o
//#Exit: 1
//#Fallback: an output is not a plain file
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
