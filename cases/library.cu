// A static library; ar is run by nvcc.
//#Args: -lib case.cu -o libcase.a -arch=sm_90
//#Args: --lib case.cu -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
