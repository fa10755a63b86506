// Option files, nested, in a list, in both spellings.
//#Args: -optf opts.txt -c case.cu -o a.o
//#Args: --options-file=outer.txt -c case.cu -o b.o
//#Args: --options-file opts.txt,more.txt -c case.cu -o c.o
//#Args: -c case.cu -o d.o -optf=inc.rsp -optf more.txt
#ifdef NEED_HEADER
#include "a.h"
#endif
__global__ void k(int *x) { *x = VALUE; }
