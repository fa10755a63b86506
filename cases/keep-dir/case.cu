// Kept files in a folder of the user's.
//#Args: --keep --keep-dir kept -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -keep -keep-dir=kept -dc case.cu -o dc.o -arch=sm_90
//#Args: -keep -keep-dir {work}/kept case.cu -o prog -arch=sm_90 -L{toolkit}/lib
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
int main() { add<<<1, 32>>>(nullptr, 1.0f); return 0; }
