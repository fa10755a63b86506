// -G: paths enter device code. With -g the host's DWARF names the keep folder.
//#Normalize: keepdir
//#Args: -G -c case.cu -o g.o -arch=sm_90
//#Args: -G -g -c case.cu -o gg.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
