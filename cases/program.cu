// Compile and link in one call.
//#Args: case.cu -o prog -arch=sm_90 -L{toolkit}/lib
//#Args: case.cu -L{toolkit}/lib
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
int main() { add<<<1, 32>>>(nullptr, 1.0f); return 0; }
