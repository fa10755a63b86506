/// Compiles a kernel of a template, finds it in the cache the second time, and runs it where there is a GPU.
#include <dlfcn.h>

#include <cstdio>
#include <vector>

#include <warpcc_rtc.hpp>

namespace rtc = warpcc::rtc;

static const char* const SOURCE = R"(
template <class T>
__global__ void scale(T* x, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] *= N;
}
)";

static const char* word(warpcc_rtc_found found) {
  switch (found) {
    case WARPCC_RTC_FOUND_MEMORY: return "found in memory";
    case WARPCC_RTC_FOUND_DISK: return "found on disk";
    case WARPCC_RTC_FOUND_SHARED: return "found in the shared cache";
    case WARPCC_RTC_FOUND_MADE: return "compiled";
    case WARPCC_RTC_FOUND_GIVEN: return "given";
  }
  return "?";
}

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

/// Runs it on the first GPU; false where there is none.
static bool run(const rtc::cache& cache) {
  try {
    rtc::device gpu(0);
    rtc::kernel kernel(cache, "#define N 3", "scale<float>", SOURCE);
    rtc::function scale = kernel.function(gpu);
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
    memory gpu_memory;
    memory::pointer x = 0;
    const std::size_t bytes = values.size() * sizeof(float);
    if (gpu_memory.allocate(&x, bytes) != 0 || gpu_memory.to_device(x, values.data(), bytes) != 0)
      throw std::runtime_error("no memory on the GPU");
    scale({{4, 1, 1}, {256, 1, 1}, 0}, nullptr, x, int(values.size()));
    gpu_memory.to_host(values.data(), x, bytes);
    gpu_memory.free(x);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 3 * float(i)) throw std::runtime_error("the GPU says otherwise");
    std::printf("ran on a GPU of compute capability %u\n", gpu.capability());
    return true;
  } catch (const rtc::error& error) {
    if (error.status() != WARPCC_RTC_STATUS_LIBRARY && error.driver() != 100) throw;
    std::printf("not run: there is no GPU here\n");
    return false;
  }
}

int main() try {
  rtc::check(warpcc_rtc_check_abi(WARPCC_RTC_ABI));
  // This machine's NVRTC, this environment's settings, and the shared caches that it names, if it does.
  rtc::cache cache(rtc::settings::of_environment().remote());
  rtc::request request("scale.cu", SOURCE, cache.target_for(90));
  request.name("scale<float>").option("-DN=3");
  for (int time = 0; time < 2; ++time) {
    rtc::image image = cache.get(request);
    std::printf("%s for %s: %s, %s\n", image.lowered_name("scale<float>").c_str(),
                std::string(image.target()).c_str(), image.bytes().size() > 500 ? "whole" : "too small",
                word(image.found()));
  }
  run(cache);
  warpcc_rtc_counts counts = cache.counts();
  std::printf("compiled %llu, from disk %llu, from memory %llu\n", (unsigned long long)counts.made,
              (unsigned long long)counts.disk, (unsigned long long)counts.memory);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
