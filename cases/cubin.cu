// A cubin as the product.
//#Args: -cubin case.cu -o out.cubin -arch=sm_90
//#Args: --cubin case.cu -arch=sm_100f
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
