// A fat binary as the product; once under a misleading name, with the source last.
//#Args: -fatbin case.cu -o out.fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: --fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -o out.cubin case.cu
//#Args: -fatbin case.cu -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
