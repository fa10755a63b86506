/// Compiles a kernel that includes an embedded header and calls an embedded function, and runs it where there is a GPU.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include <warpcc_rtc.hpp>

#include "geometry_functions.h"
#include "geometry_headers.h"

namespace rtc = warpcc::rtc;

static const char* const SOURCE = R"(
#include <geometry/point.cuh>
__device__ float twice_the_length(geometry::point p);
template <class T>
__global__ void lengths(T* x, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = twice_the_length({x[i], 4 * x[i] / 3});
}
)";

/// The memory functions of the driver, which a program would have from <cuda.h>.
struct memory {
  using pointer = unsigned long long;
  int (*allocate)(pointer*, std::size_t);
  int (*free)(pointer);
  int (*to_device)(pointer, const void*, std::size_t);
  int (*to_host)(void*, pointer, std::size_t);

  memory() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) throw std::runtime_error(dlerror());
    find(driver, "cuMemAlloc_v2", allocate);
    find(driver, "cuMemFree_v2", free);
    find(driver, "cuMemcpyHtoD_v2", to_device);
    find(driver, "cuMemcpyDtoH_v2", to_host);
  }

 private:
  template <class F>
  static void find(void* driver, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(driver, name));
    if (!function) throw std::runtime_error(name);
  }
};

/// Runs it on the first GPU, if there is one.
static void run(const rtc::cache& cache) try {
  rtc::device gpu(0);
  // What the cache was opened with belongs to every kernel: the linked image is found as any other.
  rtc::kernel kernel(cache, "", "lengths<float>", SOURCE);
  rtc::function lengths = kernel.function(gpu);
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  memory gpu_memory;
  memory::pointer x = 0;
  const std::size_t bytes = values.size() * sizeof(float);
  if (gpu_memory.allocate(&x, bytes) != 0 || gpu_memory.to_device(x, values.data(), bytes) != 0)
    throw std::runtime_error("no memory on the GPU");
  lengths({{4, 1, 1}, {256, 1, 1}, 0}, nullptr, x, int(values.size()));
  if (gpu_memory.to_host(values.data(), x, bytes) != 0) throw std::runtime_error("the kernel failed");
  gpu_memory.free(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // 3, 4 and 5 are the sides of a triangle.
    const float expected = 2 * 5 * float(i) / 3;
    if (std::fabs(values[i] - expected) > 1e-5f * expected) throw std::runtime_error("the GPU says otherwise");
  }
  std::printf("ran on a GPU of compute capability %u: right\n", gpu.capability());
} catch (const rtc::error& error) {
  if (error.status() != WARPCC_RTC_STATUS_LIBRARY && error.driver() != 100) throw;
  std::printf("not run: there is no GPU here\n");
}

/// Whether a library is loaded.
static bool is_loaded(const char* name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

int main(int count, char** arguments) try {
  rtc::check(warpcc_rtc_check_abi(WARPCC_RTC_ABI));
  const char* target = count > 1 ? arguments[1] : "sm_90";
  rtc::request common("", "", target);
  common.bundle(geometry::headers()).bundle(geometry::functions());
  rtc::cache cache(rtc::settings::of_environment(), &common);
  rtc::request request("lengths<float>", SOURCE, target);
  request.bundle(geometry::headers()).bundle(geometry::functions()).name("lengths<float>");
  rtc::image image = cache.get(request);
  std::printf("%s for %s: %s, %s\n", image.lowered_name("lengths<float>").c_str(), std::string(image.target()).c_str(),
              image.bytes().size() > 500 ? "whole" : "too small",
              image.found() == WARPCC_RTC_FOUND_MADE ? "compiled and linked" : "found");
  std::printf("nvJitLink is %s\n", is_loaded("libnvJitLink") ? "loaded" : "not loaded");
  std::printf("NVRTC is %s\n", is_loaded("libnvrtc") ? "loaded" : "not loaded");
  run(cache);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
