// cudafe++ fails: exit 2, and the dependency file stays.
//#Exit: 2
//#Args: -MD -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
int f() { return undeclared; }
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
