// Part of the fat binary's key only.
//#Args: -c case.cu -o a.o -arch=sm_90 --compress-mode=size
//#Args: -c case.cu -o b.o -arch=sm_90 --compress-mode=none
//#Args: -c case.cu -o c.o -arch=sm_90 -compress-mode=speed
//#Args: -c case.cu -o d.o -arch=sm_90 --compress-mode balance
//#Args: -c case.cu -o e.o -arch=sm_90 -no-compress
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
