// The source is a link.
//#Link: link.cu case.cu
//#Args: -c link.cu -o out.o -arch=sm_90 -MD
//#Args: -lineinfo -c link.cu -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
