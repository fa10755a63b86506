// The host preprocessor fails: exit 1, and no dependency file.
//#Exit: 1
//#Args: -MD -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
#include "missing.h"
