#include "a.h"
__global__ void k(int *x) { *x = 1; }
const char *file() { return __FILE__; }
