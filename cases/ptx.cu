// PTX as the product, with and without a name.
//#Args: -ptx case.cu -o out.ptx -arch=sm_90
//#Args: --ptx case.cu
//#Args: -ptx case.cu -arch=sm_90a -lineinfo -o line.ptx
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
