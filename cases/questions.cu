// Questions to nvcc itself go straight to it.
//#Headers: whole
//#Hit: passthrough
//#Reference: plain
//#Args: --version
//#Args: -V
//#Args: --help
//#Args: --list-gpu-arch
//#Args: --list-gpu-code
//#Args: --dryrun -c case.cu
//#Stderr: ignore-names
//#Args: --dryrun --keep -c case.cu -o out.o
//#Stderr: ignore-names
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
