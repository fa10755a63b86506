// Resolved on this machine: the word itself must never be keyed. Without a GPU nvcc warns.
//#Args: -c case.cu -o out.o -arch=native
//#Hit: none
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
