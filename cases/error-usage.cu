// What nvcc refuses: no work, its own words.
//#Hit: passthrough
//#Args: -c case.cu --no-such-flag
//#Exit: 1
//#Hit: passthrough
//#Args: -c missing.cu
//#Exit: 1
//#Hit: passthrough
//#Args: -c case.cu -arch=sm_12
//#Exit: 1
//#Hit: passthrough
//#Args: -c -o out.o
//#Exit: 1
//#Hit: passthrough
//#Args: -dlto -c case.cu -gencode arch=compute_90,code=lto_90
//#Exit: 1
//#Hit: passthrough
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
