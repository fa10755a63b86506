// A shared library, with the host's own flags, static and shared runtime.
//#Args: -shared -Xcompiler -fPIC case.cu -o libcase.so -arch=sm_90 -L{toolkit}/lib
//#Args: --shared --compiler-options '-fPIC' case.cu -o libcase2.so -arch=sm_90 -cudart none -Xlinker -soname=x
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
