// A date in the source makes a direct hit unsafe. The date is pinned so that two runs
// can be compared at all.
//#Env: SOURCE_DATE_EPOCH=86400
//#Hit: none
//#Args: -c case.cu -o out.o -arch=sm_90
__global__ void k(int *x) { *x = 1; }
const char *built() { return __DATE__ " " __TIME__; }
