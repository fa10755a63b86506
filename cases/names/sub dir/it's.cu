#ifdef TEXT
__device__ const char *text = TEXT;
#endif
__global__ void k(int *x) { *x = __LINE__; }
const char *file() { return __FILE__; }
