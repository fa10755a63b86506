#include "a.h"
__global__ void other(int *x) { *x = 3; }
