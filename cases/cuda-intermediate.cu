// -cuda stops before the host compiler; its text names the folder of cudafe++'s file.
//#Normalize: keepdir
//#Args: -cuda case.cu -o out.cpp.ii -arch=sm_90
//#Args: --cuda case.cu
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
