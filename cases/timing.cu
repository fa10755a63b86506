// Side files with times: nvcc does it, nothing is kept.
//#Hit: passthrough
//#Reference: plain
//#Outputs: nothing
//#Args: -time times.csv -c case.cu -o out.o
//#Args: -fdevice-time-trace trace.json -c case.cu -o out.o
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
