// The first source's object is finished before the second fails, and stays.
//#Exit: 2
//#Args: -MD -c case.cu bad.cu -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
