// Link-time optimisation: nvlink compiles LTO-IR, so its inputs and options decide code.
//#Headers: whole
//#Args: -dc case.cu lib.cu -gencode arch=compute_90,code=lto_90
//#Args: -dlink -dlto case.o lib.o -o dlink.o -arch=sm_90 -L{toolkit}/lib
//#Args: -dlto case.o lib.o -o prog -arch=sm_90 -L{toolkit}/lib
//#Args: -dlto -arch=sm_90 case.cu lib.cu -o prog2 -L{toolkit}/lib
//#Args: -rdc=true -c case.cu -o mixed.o -gencode arch=compute_80,code=lto_80 -gencode arch=compute_90,code=sm_90
extern __device__ int add_one(int);
__global__ void k(int *x) { *x = add_one(*x); }
int main() { k<<<1, 1>>>(nullptr); return 0; }
