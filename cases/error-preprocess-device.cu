// Only one architecture's preprocessor fails; nothing is left over.
//#Exit: 1
//#Args: -MD -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
#if __CUDA_ARCH__ >= 900
#error not for this one
#endif
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
