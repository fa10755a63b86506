// ptxas prints to standard error.
//#Args: -c case.cu -o out.o -arch=sm_90 -Xptxas -v,-warn-spills,-warn-double-usage
//#Stderr: ignore-timing
__global__ void k(double *x) { double a[64]; for (int i = 0; i < 64; i++) a[i] = x[i]; for (int i = 0; i < 64; i++) x[i] = a[(int)x[i] & 63]; }
