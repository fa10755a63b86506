// nvcc runs ptxas without -o as a check of PTX that is only embedded.
//#Args: -c case.cu -o out.o -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=compute_90 -gencode arch=compute_120,code=compute_120
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
