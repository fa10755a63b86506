// Ways in which a header comes in.
//#Args: -include inc/forced.h -I inc -isystem sys -c case.cu -o a.o -arch=sm_90 -MD
//#Args: --pre-include=inc/forced.h -Iinc -isystem=sys -c case.cu -o b.o -arch=sm_90 -DFORCED=1
//#Args: -Xcompiler -iquote,quote -include inc/forced.h --include-path inc,sys -c case.cu -o c.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -include inc/forced.h -I inc,sys -Xcompiler "-iquote quote" -c case.cu -o d.o -arch=sm_90 -UNOTHING
#include "both.h"
#include <system.h>
#if __has_include("optional.h")
#error not in this case
#endif
__global__ void k(int *x) { *x = FORCED_BY_HEADER + BOTH + SYSTEM; }
