// Relocatable device code in every spelling: objects, device link, program, archive.
//#Args: -dc case.cu lib.cu -arch=sm_90
//#Args: -dlink case.o lib.o -o dlink.o -arch=sm_90 -L{toolkit}/lib
//#Args: case.o lib.o dlink.o -o prog -arch=sm_90 -L{toolkit}/lib
//#Args: -rdc=true case.cu lib.cu -o prog2 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -L{toolkit}/lib
//#Args: -lib lib.o -o liblib.a
//#Args: case.o -L. -llib -o prog3 -arch=sm_90 -L{toolkit}/lib
//#Args: -rdc=true -c case.cu -o rdc.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: --device-c case.cu -o dc.o --relocatable-device-code=true -arch=sm_90
extern __device__ int add_one(int);
__global__ void k(int *x) { *x = add_one(*x); }
int main() { k<<<1, 1>>>(nullptr); return 0; }
