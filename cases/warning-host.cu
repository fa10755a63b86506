// A warning of the host compiler, which prints last.
//#Args: -c case.cu -o out.o -arch=sm_90 -Xcompiler -Wall,-Wextra
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
static int never_called(int n) { return n; }
int f(int n) { char b[2]; for (int i = 0; i <= n; i++) b[i] = 'x'; return b[n > 3]; }
