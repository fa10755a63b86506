// -t changes nothing but the order in which nvcc works.
//#Args: -t 4 -c case.cu -o a.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -t4 -c case.cu -o b.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: --threads=0 -t=0 -c case.cu -o c.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: --threads 2 -c case.cu -o d.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
