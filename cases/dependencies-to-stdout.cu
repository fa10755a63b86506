// The text is the product: nothing to cache.
//#Headers: whole
//#Hit: passthrough
//#Reference: plain
//#Args: -M case.cu
//#Args: -MM case.cu
//#Args: -MM -dc case.cu
//#Args: -M case.cu -MF out.d -MT target
//#Args: -M -E case.cu -o x.d
#include <math.h>
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
