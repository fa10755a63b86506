// Line tables hold the source's path, relative and absolute.
//#Headers: whole
//#Args: -lineinfo -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -lineinfo -c {work}/case.cu -o abs.o -arch=sm_90
//#Args: --generate-line-info -cubin case.cu -o out.cubin -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
