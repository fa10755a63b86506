// The compiler flags of Fedora and Arch, which define macros with -Wp. -Wp with anything else may write a file.
//#Args: -forward-unknown-to-host-compiler -O2 -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -Wp,-D_GLIBCXX_ASSERTIONS -fstack-protector-strong -fstack-clash-protection -fcf-protection -fno-plt -c case.cu -o a.o -arch=sm_90
//#Args: -O2 '-Xcompiler=-Wp\,-D_FORTIFY_SOURCE=3,-march=x86-64' -c case.cu -o b.o -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
#ifdef __CUDA_ARCH__
#elif _FORTIFY_SOURCE != 3
#error "the macro is lost"
#endif
