// What `cargo xtask demo` compiles: a little Thrust, which is a lot of headers, and one kernel.

#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

template <typename T>
void sort_and_sum(thrust::device_vector<T>& values) {
    thrust::sort(values.begin(), values.end());
    thrust::inclusive_scan(values.begin(), values.end(), values.begin());
}

template void sort_and_sum<int>(thrust::device_vector<int>&);
template void sort_and_sum<float>(thrust::device_vector<float>&);
template void sort_and_sum<double>(thrust::device_vector<double>&);

__global__ void saxpy(int n, float a, const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}

void launch_saxpy(int n, float a, const float* x, float* y) {
    saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);
}
