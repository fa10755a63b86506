// Where outputs go: -odir, absolute, dotted, existing names overwritten.
//#Args: -odir obj -c case.cu -arch=sm_90
//#Args: -c case.cu -o {work}/obj/abs.o -arch=sm_90
//#Args: -c ./case.cu -o obj/../dotted.o -arch=sm_90
//#Args: -c case.cu -o obj/out.weird -arch=sm_90
//#Args: -c case.cu -o obj/noextension -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
