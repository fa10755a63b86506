// OptiX IR, which never meets ptxas.
//#Args: -optix-ir case.cu -o out.optixir -arch=compute_90
//#Args: --optix-ir case.cu
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
