// What `cargo xtask bench` compiles: the parts of Thrust and CUB that applications use most,
// over 1000 headers, with device code that takes ptxas about as long as cicc.

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

namespace {

template <typename T>
struct Square {
    __host__ __device__ T operator()(T value) const { return value * value; }
};

}  // namespace

template <typename T>
T condense(thrust::device_vector<T>& keys, thrust::device_vector<int>& values) {
    thrust::sort_by_key(keys.begin(), keys.end(), values.begin());
    const auto end = thrust::unique(keys.begin(), keys.end());
    thrust::inclusive_scan(keys.begin(), end, keys.begin());
    return thrust::transform_reduce(keys.begin(), end, Square<T>(), T(0), thrust::plus<T>());
}

template int condense<int>(thrust::device_vector<int>&, thrust::device_vector<int>&);
template float condense<float>(thrust::device_vector<float>&, thrust::device_vector<int>&);
template double condense<double>(thrust::device_vector<double>&, thrust::device_vector<int>&);

cudaError_t sort_pairs(void* temp, size_t& bytes, const unsigned* keys_in, unsigned* keys_out,
                       const float* values_in, float* values_out, int n) {
    return cub::DeviceRadixSort::SortPairs(temp, bytes, keys_in, keys_out, values_in, values_out,
                                           n);
}

cudaError_t sum_segments(void* temp, size_t& bytes, const double* in, double* out, int segments,
                         const int* begins, const int* ends) {
    return cub::DeviceSegmentedReduce::Sum(temp, bytes, in, out, segments, begins, ends);
}
