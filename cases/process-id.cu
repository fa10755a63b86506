// A static variable and no external function: the module id ends in the process id and
// stands in the object, so nvcc differs from itself and only the rest can be compared.
//#Outputs: out.d
//#Args: -MD -rdc=true -c case.cu -o out.o -arch=sm_90
static __device__ int counter;
static __global__ void k() { counter++; }
