// -ccbin as a file, as a folder, by variable.
//#Args: -ccbin /usr/bin/g++ -c case.cu -o a.o -arch=sm_90
//#Args: -ccbin=/usr/bin/c++ -c case.cu -o b.o -arch=sm_90
//#Args: --compiler-bindir /usr/bin -c case.cu -o c.o -arch=sm_90
//#Args: -ccbin g++-12 -c case.cu -o d.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
