// Inputs that are already half way: PTX, cubin.
//#Args: -ptx case.cu -o mid.ptx -arch=compute_90
//#Args: -cubin mid.ptx -o mid.cubin -arch=sm_90
//#Args: -fatbin mid.ptx -o mid.fatbin -arch=sm_90
//#Args: -fatbin mid.cubin -o mid2.fatbin -arch=sm_90
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
