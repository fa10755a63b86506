// Dependency files, in all spellings: they must be there on a hit too.
//#Args: -MD -c case.cu -o a.o -I inc
//#Args: -MMD -c case.cu -o b.o -I inc
//#Args: -MD -MF c.dep -c case.cu -o c.o -I inc
//#Args: -MD -MT "some target" -MF d.dep -MP -c case.cu -o d.o -I inc
//#Args: --generate-dependencies-with-compile --dependency-output e.dep --generate-dependency-targets --dependency-target-name e -c case.cu -o e.o -I inc
//#Args: --generate-nonsystem-dependencies-with-compile -c case.cu -I inc
//#Args: -MD -MT f.o -MF f.d -x cu -c {work}/case.cu -o f.o -Iinc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -MMD -ptx case.cu -o g.ptx -I inc
//#Args: -MD -dc case.cu other.cu -I inc
//#Args: -MD -MF h.d -odir out/ -c case.cu -o h.o -I inc
//#Args: -MD -MF i.d -odir out/ -MT i -c case.cu -o i.o -I inc
//#Args: -MD -MF j.d -MT "" -c case.cu -o j.o -I inc
#include "a.h"
#if __CUDA_ARCH__ >= 900
#include "only-90.h"
#endif
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
