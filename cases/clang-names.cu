// clang writes names that are not ASCII with escapes into its markers, and nvcc takes them over.
//#Args: -ccbin clang++-19 -MD -ptx case.cu -o a.ptx -I "sub ü"
//#Args: -ccbin clang++-19 -MMD -MP -c case.cu -o b.o -I "sub ü"
//#Args: -ccbin clang++-19 -MD -ptx "sub ü/é.cu" -o c.ptx
//#Fallback: a quote or a backslash in a name of the dependency file
//#File: sub ü/é.h
//| #define É 1
//#File: sub ü/é.cu
//| __global__ void add(float *x) { x[0] += 1; }
#include <é.h>
__global__ void add(float *x) { x[0] += 1; }
