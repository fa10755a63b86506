extern __device__ float twice(float x);

__global__ void scale(float *p) { p[threadIdx.x] = twice(p[threadIdx.x]); }

int main() {
    float *p;
    cudaMalloc(&p, 32 * sizeof(float));
    scale<<<1, 32>>>(p);
    return cudaDeviceSynchronize() != cudaSuccess;
}
