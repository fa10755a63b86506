// -E goes straight to nvcc.
//#Hit: passthrough
//#Reference: plain
//#Args: -E case.cu
//#Args: -E case.cu -o out.ii -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: --preprocess case.cu -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
