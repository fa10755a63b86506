__global__ void other_kernel(int *x) { *x = 2; }
int other() { other_kernel<<<1, 1>>>(nullptr); return 0; }
