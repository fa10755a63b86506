// SASS and PTX of one virtual architecture share one cicc run.
//#Args: -c case.cu -o out.o -gencode arch=compute_80,code=[sm_80,sm_86,compute_80] --generate-code=arch=compute_90,code=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
