// The host compiler fails on what cudafe++ let through: exit 1.
//#Exit: 1
//#Args: -MD -c case.cu -o out.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
void f() { asm("%z9" : : "r"(1)); }
