// No architecture, one by -arch, virtual and real apart, and nvcc's derived output name.
//#Args: -c case.cu
//#Args: -c case.cu -o b.o -arch=sm_80
//#Args: -c case.cu -o c.o -arch compute_80 -code sm_80,sm_86
//#Args: -c case.cu -o d.o --gpu-architecture=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
