/// The library on a real GPU, from C++: every function and type that `rtc-verify --role export` wrote down, by plan and launcher
/// on a stream of its own; a kernel of a user's; wrong arguments, after which the context still works; what a function costs.
///
///     g++ -std=c++17 -O2 -I ../include verify.cpp -lwarpcc_rtc_c -ldl -pthread -o verify
///     ./verify CASES RESULTS CACHE-FOLDER        (then: rtc-verify --role judge --out RESULTS, with the same --seed)
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include <warpcc_rtc.hpp>

namespace rtc = warpcc::rtc;
using launcher_handle = rtc::detail::owner<warpcc_rtc_launcher, warpcc_rtc_launcher_free>;

static const std::size_t GUARD = 512, ROOM = 1 << 16;
static const unsigned char POISON = 0xa5;

/// The driver's functions, which a program would have from <cuda.h>.
struct driver_functions {
  using pointer = unsigned long long;
  int (*allocate)(pointer*, std::size_t);
  int (*to_device)(pointer, const void*, std::size_t);
  int (*to_host)(void*, pointer, std::size_t);
  int (*stream_create)(CUstream_st**, unsigned);
  int (*stream_wait)(CUstream_st*);

  driver_functions() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) throw std::runtime_error(dlerror());
    find(driver, "cuMemAlloc_v2", allocate);
    find(driver, "cuMemcpyHtoD_v2", to_device);
    find(driver, "cuMemcpyDtoH_v2", to_host);
    find(driver, "cuStreamCreate", stream_create);
    find(driver, "cuStreamSynchronize", stream_wait);
  }

 private:
  template <class F>
  static void find(void* driver, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(driver, name));
    if (!function) throw std::runtime_error(name);
  }
};

static void ok(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": driver error " + std::to_string(result));
}
static void that(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("it does not hold: ") + what);
}

struct type { int dtype; std::size_t size; };
static const std::map<std::string, type> TYPES = {
    {"bool", {WARPCC_RTC_DTYPE_BOOL, 1}},         {"int8", {WARPCC_RTC_DTYPE_INT8, 1}},
    {"uint8", {WARPCC_RTC_DTYPE_UINT8, 1}},       {"int16", {WARPCC_RTC_DTYPE_INT16, 2}},
    {"uint16", {WARPCC_RTC_DTYPE_UINT16, 2}},     {"int32", {WARPCC_RTC_DTYPE_INT32, 4}},
    {"uint32", {WARPCC_RTC_DTYPE_UINT32, 4}},     {"int64", {WARPCC_RTC_DTYPE_INT64, 8}},
    {"uint64", {WARPCC_RTC_DTYPE_UINT64, 8}},     {"float16", {WARPCC_RTC_DTYPE_FLOAT16, 2}},
    {"bfloat16", {WARPCC_RTC_DTYPE_BFLOAT16, 2}}, {"float8_e4m3", {WARPCC_RTC_DTYPE_FLOAT8_E4M3, 1}},
    {"float8_e5m2", {WARPCC_RTC_DTYPE_FLOAT8_E5M2, 1}}, {"float32", {WARPCC_RTC_DTYPE_FLOAT32, 4}},
    {"float64", {WARPCC_RTC_DTYPE_FLOAT64, 8}},
};

/// A line of `cases`: the output first, then the inputs.
struct asked {
  std::string function;
  bool add;
  std::uint64_t count;
  std::vector<type> types;
  std::vector<std::size_t> offsets;

  std::uint64_t address(driver_functions::pointer memory, std::size_t which) const {
    return memory + which * ROOM + GUARD + offsets[which] * types[which].size;
  }
  std::size_t bytes(std::size_t which) const { return count * types[which].size; }

  rtc::plan plan(driver_functions::pointer memory) const {
    std::vector<warpcc_rtc_tensor> tensors;
    for (std::size_t which = 0; which < types.size(); ++which)
      tensors.push_back({address(memory, which), &count, nullptr, 1, types[which].dtype});
    const int write = add ? WARPCC_RTC_WRITE_ADD : WARPCC_RTC_WRITE_REPLACE;
    static const char* const names[] = {"a", "b", "c", "d"};
    std::vector<warpcc_rtc_value> values;
    std::string text = function + "(";
    for (std::size_t which = 1; which < types.size(); ++which) {
      values.push_back({names[which - 1], &tensors[which], 0, 0, WARPCC_RTC_VALUE_KIND_TENSOR});
      text += std::string(which > 1 ? ", " : "") + names[which - 1];
    }
    warpcc_rtc_plan* made = nullptr;
    if (values.size() == 1)
      rtc::check(warpcc_rtc_plan_unary(function.c_str(), &tensors[1], &tensors[0], write, &made));
    else if (values.size() == 2)
      rtc::check(warpcc_rtc_plan_binary(function.c_str(), &values[0], &values[1], &tensors[0], write, &made));
    else
      rtc::check(warpcc_rtc_plan_fused((text + ")").c_str(), values.data(), values.size(), &tensors[0], write, &made));
    return rtc::plan(made);
  }
};

static std::vector<asked> read_cases(const std::string& folder) {
  std::ifstream file(folder + "/cases");
  std::vector<asked> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    asked one;
    std::string request, name;
    std::size_t offset;
    words >> one.function >> request >> one.count;
    one.add = request == "add";
    while (words >> name >> offset) {
      one.types.push_back(TYPES.at(name));
      one.offsets.push_back(offset);
    }
    all.push_back(one);
  }
  that(!all.empty(), "there are cases");
  return all;
}

/// Every case: compiled by many threads at once, then run one after another.
static void functions(const rtc::cache& cache, const rtc::device& gpu, const driver_functions& driver,
                      const std::string& folder, const char* results) {
  const std::vector<asked> cases = read_cases(folder);
  driver_functions::pointer memory = 0;
  ok(driver.allocate(&memory, 5 * ROOM), "memory");
  const std::string target = cache.target_for(gpu.capability());
  std::atomic<std::size_t> next{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < std::thread::hardware_concurrency(); ++number)
    threads.emplace_back([&] {
      for (std::size_t index; (index = next++) < cases.size();) try {
          rtc::check(warpcc_rtc_plan_warm(cases[index].plan(memory).get(), cache.get(), target.c_str(), nullptr));
        } catch (const std::exception& error) {
          if (failed++ < 5) std::fprintf(stderr, "%s: %s\n", cases[index].function.c_str(), error.what());
        }
    });
  for (auto& thread : threads) thread.join();
  that(failed == 0, "every kernel compiles");
  auto launcher = rtc::detail::make<launcher_handle>(warpcc_rtc_launcher_new, (const warpcc_rtc_cache*)cache.get(),
                                                     (const warpcc_rtc_device*)gpu.get());
  CUstream_st* stream = nullptr;
  ok(driver.stream_create(&stream, 1), "a stream");
  std::ifstream data(folder + "/data", std::ios::binary);
  std::ofstream out(results, std::ios::binary);
  std::vector<char> bytes;
  for (const asked& one : cases) {
    for (std::size_t which = 1; which < one.types.size(); ++which) {
      bytes.resize(one.bytes(which));
      data.read(bytes.data(), std::streamsize(bytes.size()));
      ok(driver.to_device(one.address(memory, which), bytes.data(), bytes.size()), "copy");
    }
    bytes.assign(one.bytes(0) + 2 * GUARD, char(POISON));
    data.read(bytes.data() + GUARD, std::streamsize(one.bytes(0)));
    that(bool(data), "the data are whole");
    const std::uint64_t at = one.address(memory, 0);
    ok(driver.to_device(at - GUARD, bytes.data(), bytes.size()), "copy");
    rtc::check(warpcc_rtc_launcher_run(launcher.get(), one.plan(memory).get(), stream, nullptr));
    ok(driver.stream_wait(stream), one.function.c_str());
    ok(driver.to_host(bytes.data(), at - GUARD, bytes.size()), "copy back");
    for (std::size_t place = 0; place < GUARD; ++place)
      that((unsigned char)bytes[place] == POISON && (unsigned char)bytes[bytes.size() - 1 - place] == POISON,
           "nothing beside the output is written");
    out.write(bytes.data() + GUARD, std::streamsize(one.bytes(0)));
  }
  warpcc_rtc_counts counts;
  rtc::check(warpcc_rtc_launcher_counts(launcher.get(), &counts));
  std::printf("{\"what\": \"functions from C++\", \"cases\": %zu, \"compiled_at_launch\": %llu}\n", cases.size(),
              (unsigned long long)counts.made);
  that(counts.made == 0, "what was warmed is found");
}

static const char* const SCALE =
    "template<class T> __global__ void scale(T* x, T by, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] = x[i] * by + N;\n}\n";

static bool refused(const char* word, warpcc_rtc_status status) {
  return status != WARPCC_RTC_STATUS_OK && std::strstr(warpcc_rtc_error_text(), word);
}

/// A kernel of a user's, and what it must not be given: after each refusal it still runs rightly.
static void kernels(const rtc::cache& cache, const rtc::device& gpu, const driver_functions& driver) {
  rtc::kernel kernel(cache, "#define N 1", "scale<float>", SCALE);
  rtc::function scale = kernel.function(gpu);
  driver_functions::pointer x = 0;
  std::vector<float> values(1000);
  ok(driver.allocate(&x, values.size() * 4), "memory");
  auto right = [&] {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
    ok(driver.to_device(x, values.data(), values.size() * 4), "copy");
    scale({{4, 1, 1}, {256, 1, 1}, 0}, nullptr, x, 3.0f, int(values.size()));
    ok(driver.to_host(values.data(), x, values.size() * 4), "copy back");
    for (std::size_t i = 0; i < values.size(); ++i) that(values[i] == 3 * float(i) + 1, "the kernel's results");
  };
  right();
  int count = 1000;
  float by = 3;
  void* arguments[] = {&x, &by, &count};
  warpcc_rtc_shape shape = {{4, 1, 1}, {2048, 1, 1}, 0};
  that(refused("2048", warpcc_rtc_function_launch(scale.get(), &shape, nullptr, arguments, 3)), "too many threads");
  right();
  shape.block[0] = 256;
  that(refused("takes 3", warpcc_rtc_function_launch(scale.get(), &shape, nullptr, arguments, 2)), "too few arguments");
  right();
  shape.shared = 1 << 30;
  that(warpcc_rtc_function_launch(scale.get(), &shape, nullptr, arguments, 3) != WARPCC_RTC_STATUS_OK, "a GiB of shared memory");
  right();
  // Arrays that are on the host, none, or no shapes of one output.
  auto launcher = rtc::detail::make<launcher_handle>(warpcc_rtc_launcher_new, (const warpcc_rtc_cache*)cache.get(),
                                                     (const warpcc_rtc_device*)gpu.get());
  const std::uint64_t length = 1000, other = 999;
  warpcc_rtc_tensor output = {x, &length, nullptr, 1, WARPCC_RTC_DTYPE_FLOAT32}, input = output;
  warpcc_rtc_plan* plan = nullptr;
  input.address = std::uint64_t(reinterpret_cast<std::uintptr_t>(values.data()));
  rtc::check(warpcc_rtc_plan_unary("relu", &input, &output, 0, &plan));
  const warpcc_rtc_status host = warpcc_rtc_launcher_run(launcher.get(), plan, nullptr, nullptr);
  std::printf("{\"what\": \"a host address\", \"error\": \"%s\"}\n", host ? warpcc_rtc_error_text() : "none");
  warpcc_rtc_plan_free(plan);
  that(host != WARPCC_RTC_STATUS_OK, "a host address is refused");
  right();
  input.address = 0;
  that(refused("address 0", warpcc_rtc_plan_unary("relu", &input, &output, 0, &plan)), "no address");
  input.address = x;
  input.shape = &other;
  that(refused("broadcast", warpcc_rtc_plan_unary("relu", &input, &output, 0, &plan)), "other shapes");
  right();
  const char* cursed = "template<class T> __global__ void scale(T* x) { *x = nothing; }";
  warpcc_rtc_function* none = nullptr;
  that(refused("nothing", warpcc_rtc_cache_get_function(cache.get(), "", "scale<float>", cursed, std::strlen(cursed), gpu.get(), nullptr, &none)),
       "a source that does not compile");
  right();

  auto median = [](auto call) {
    std::vector<double> times;
    for (int round = 0; round < 101; ++round) {
      auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 100; ++i) call();
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 100);
    }
    std::sort(times.begin(), times.end());
    return times[50];
  };
  std::printf("{\"what\": \"get_function by texts from memory, C++\", \"us\": %.3f}\n",
              median([&] { cache.get_function("#define N 1", "scale<float>", SCALE, gpu); }));
  std::printf("{\"what\": \"a kernel at hand, C++\", \"us\": %.3f}\n", median([&] { kernel.function(gpu); }));
  std::printf("{\"what\": \"launch, C++\", \"us\": %.3f}\n",
              median([&] { scale({{1, 1, 1}, {256, 1, 1}, 0}, nullptr, x, 1.0f, 0); }));
}

int main(int count, char** words) try {
  if (count != 4) {
    std::fprintf(stderr, "verify CASES RESULTS CACHE-FOLDER\n");
    return 2;
  }
  rtc::check(warpcc_rtc_check_abi(WARPCC_RTC_ABI));
  rtc::cache cache(rtc::settings::in_memory().folder(words[3]));
  rtc::device gpu(0);
  driver_functions driver;
  kernels(cache, gpu, driver);
  functions(cache, gpu, driver, words[1], words[2]);
  that(cache.remarks().empty(), cache.remarks().c_str());
  std::printf("all right\n");
} catch (const std::exception& error) {
  std::fprintf(stderr, "verify: %s\n", error.what());
  return 1;
}
