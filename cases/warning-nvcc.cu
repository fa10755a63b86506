// nvcc itself warns, on every run, hit or not.
//#Args: -c case.cu -o out.o -arch=sm_90 -O1 -O2
//#Args: -c case.cu -o b.o -gencode arch=compute_75,code=sm_75 -maxrregcount 32 -maxrregcount 64
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
