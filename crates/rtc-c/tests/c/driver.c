/* Functions, contexts, streams and launches, with a stand-in for the driver. Arguments: an empty folder. */
#include "check.h"
#include "stand_in_driver.h"

static const char *const SCALE = "template<class T> __global__ void scale(T* x, int count) { if (count) *x *= N; }\n";

static void launches(const char *folder) {
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_device *gpu;
  warpcc_rtc_function *function, *again;
  warpcc_rtc_kernel *kernel;
  warpcc_rtc_counts counts;
  warpcc_rtc_shape shape = {{7, 2, 1}, {128, 2, 1}, 64};
  unsigned long long address = 0x1234560, seen;
  int count = 41, seen_count;
  void *arguments[] = {NULL, NULL};
  const size_t sizes[] = {sizeof address, sizeof count};
  uint32_t capability;
  struct stand_in_launch *last = stand_in_last();

  OK(warpcc_rtc_device_open(0, &gpu));
  OK(warpcc_rtc_device_capability(gpu, &capability));
  CHECK(capability == 90);
  OK(warpcc_rtc_cache_get_function(cache, "#define N 3", "scale<float>", SCALE, TO_NUL, gpu, NULL, &function));
  CHECK(strcmp(warpcc_rtc_function_name(function), "_Z5scaleIfEvPT_i") == 0);
  stand_in_sizes(sizes, 2);
  INVALID("argument 0", warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  arguments[0] = &address;
  arguments[1] = &count;
  CHECK(last->count == 0);
  INVALID("takes 2 argument(s)", warpcc_rtc_function_launch(function, &shape, NULL, arguments, 1));
  CHECK(last->count == 0);
  OK(warpcc_rtc_function_launch(function, &shape, (CUstream_st *)0x770, arguments, 2));
  CHECK(last->count == 1 && last->function == (void *)warpcc_rtc_function_cuda(function));
  CHECK(strcmp(last->name, "_Z5scaleIfEvPT_i") == 0);
  CHECK(last->grid[0] == 7 && last->grid[1] == 2 && last->grid[2] == 1);
  CHECK(last->block[0] == 128 && last->block[1] == 2 && last->block[2] == 1 && last->shared == 64);
  CHECK(last->stream == (void *)0x770 && last->context == stand_in_primary());
  memcpy(&seen, last->arguments, sizeof seen);
  memcpy(&seen_count, last->arguments + sizeof seen, sizeof seen_count);
  CHECK(seen == address && seen_count == count);

  /* Again, by its texts and as a kernel: the same function, nothing compiled, nothing loaded. */
  OK(warpcc_rtc_kernel_new(cache, "", "bad", "oops\n", TO_NUL, &kernel));
  OK(warpcc_rtc_kernel_file(kernel, "src/bad.cu"));
  INVALID("set before", warpcc_rtc_kernel_file(kernel, "src/other.cu"));
  INVALID("file", warpcc_rtc_kernel_file(kernel, NULL));
  INVALID("kernel", warpcc_rtc_kernel_file(NULL, "src/bad.cu"));
  FAILS(WARPCC_RTC_STATUS_COMPILE, "src/bad.cu:1: ", warpcc_rtc_kernel_function(kernel, gpu, NULL, &again));
  warpcc_rtc_kernel_free(kernel);
  OK(warpcc_rtc_kernel_new(cache, "#define N 3", "scale<float>", SCALE, strlen(SCALE), &kernel));
  OK(warpcc_rtc_kernel_function(kernel, gpu, NULL, &again));
  CHECK(warpcc_rtc_function_cuda(again) == warpcc_rtc_function_cuda(function));
  warpcc_rtc_function_free(again);
  OK(warpcc_rtc_cache_get_function(cache, "#define N 3", "scale<float>", SCALE, TO_NUL, gpu, NULL, &again));
  CHECK(warpcc_rtc_function_cuda(again) == warpcc_rtc_function_cuda(function));
  warpcc_rtc_function_free(again);
  OK(warpcc_rtc_cache_counts(cache, &counts));
  CHECK(counts.made == 1 && stand_in_loads() == 1);
  /* Another parameter is another function. */
  OK(warpcc_rtc_cache_get_function(cache, "#define N 4", "scale<float>", SCALE, TO_NUL, gpu, NULL, &again));
  CHECK(warpcc_rtc_function_cuda(again) != warpcc_rtc_function_cuda(function));
  warpcc_rtc_function_free(again);
  CHECK(stand_in_loads() == 2);

  shape.block[1] = 9;
  INVALID("1152 threads", warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  shape.block[1] = 0;
  INVALID("block", warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  shape.block[1] = 1;
  shape.grid[2] = 0;
  INVALID("grid", warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  INVALID("shape", warpcc_rtc_function_launch(function, NULL, NULL, arguments, 2));
  INVALID("function", warpcc_rtc_function_launch(NULL, &shape, NULL, arguments, 2));
  CHECK(last->count == 1);
  shape.grid[2] = 1;
  stand_in_fail("cuLaunchKernel", 1);
  FAILS(WARPCC_RTC_STATUS_DRIVER, "cuLaunchKernel", warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  CHECK(warpcc_rtc_error_driver() == 1);
  OK(warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  CHECK(last->count == 2 && last->stream == NULL);

  /* The function outlives everything that it came of. */
  warpcc_rtc_kernel_free(kernel);
  warpcc_rtc_cache_free(cache);
  warpcc_rtc_device_free(gpu);
  CHECK(stand_in_unloads() == 1);
  OK(warpcc_rtc_function_launch(function, &shape, NULL, arguments, 2));
  warpcc_rtc_function_free(function);
  CHECK(stand_in_unloads() == 2 && stand_in_retained() == 0 && stand_in_destroyed() == 0);
}

static void takes_the_callers_context(const char *folder) {
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_device *gpu;
  warpcc_rtc_function *function;
  warpcc_rtc_shape shape = {{1, 1, 1}, {32, 1, 1}, 0};
  static char theirs;
  void *current;

  cuCtxSetCurrent(NULL);
  INVALID("none is current", warpcc_rtc_device_of_current_context(&gpu));
  CHECK(gpu == NULL);
  cuCtxSetCurrent(&theirs);
  OK(warpcc_rtc_device_of_current_context(&gpu));
  cuCtxGetCurrent(&current);
  CHECK(current == &theirs);
  OK(warpcc_rtc_cache_get_function(cache, "#define N 3", "scale<float>", SCALE, TO_NUL, gpu, NULL, &function));
  cuCtxSetCurrent(NULL);
  stand_in_sizes(NULL, 0);
  OK(warpcc_rtc_function_launch(function, &shape, (CUstream_st *)0x880, NULL, 0));
  CHECK(stand_in_last()->context == &theirs && stand_in_last()->stream == (void *)0x880);
  warpcc_rtc_function_free(function);
  OK(warpcc_rtc_cache_unload_functions(cache));
  warpcc_rtc_device_free(gpu);
  CHECK(stand_in_destroyed() == 0);
  cuCtxSetCurrent(stand_in_primary());
  OK(warpcc_rtc_device_of_current_context(&gpu));
  CHECK(stand_in_retained() == 1);
  warpcc_rtc_device_free(gpu);
  CHECK(stand_in_retained() == 0 && stand_in_destroyed() == 0);
  warpcc_rtc_cache_free(cache);
}

static void errors_of_the_driver(const char *folder) {
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_device *gpu;
  warpcc_rtc_function *function;
  warpcc_rtc_image *image;
  const char *names[] = {"_Z5scaleIfEvPT_i", "missing"};
  /* Of a driver that is older than the PTX, too. */
  static const struct {
    int number;
    const char *advice;
  } refusals[] = {{218, "load_ptx"}, {222, "update the driver"}, {223, "CUDA_DISABLE_PTX_JIT"}, {209, "compile for this one"}};
  size_t index;

  FAILS(WARPCC_RTC_STATUS_DRIVER, "GPU 5", warpcc_rtc_device_open(5, &gpu));
  CHECK(warpcc_rtc_error_driver() == 101 && gpu == NULL);
  OK(warpcc_rtc_device_open(0, &gpu));
  for (index = 0; index < sizeof refusals / sizeof *refusals; ++index) {
    stand_in_fail("cuModuleLoadData", refusals[index].number);
    FAILS(WARPCC_RTC_STATUS_DRIVER, refusals[index].advice,
          warpcc_rtc_cache_get_function(cache, "#define N 3", "scale<float>", SCALE, TO_NUL, gpu, NULL, &function));
    CHECK((int)warpcc_rtc_error_driver() == refusals[index].number && function == NULL);
  }
  OK(warpcc_rtc_cache_get_function(cache, "#define N 3", "scale<float>", SCALE, TO_NUL, gpu, NULL, &function));
  warpcc_rtc_function_free(function);
  OK(warpcc_rtc_cache_get_image(cache, "#define N 3", "scale<float>", SCALE, TO_NUL, "sm_90", NULL, &image));
  OK(warpcc_rtc_device_load(gpu, image, names[0], &function));
  warpcc_rtc_function_free(function);
  FAILS(WARPCC_RTC_STATUS_DRIVER, "lowered name", warpcc_rtc_device_load(gpu, image, names[1], &function));
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_image_new("lto_90", "x", 1, &image));
  INVALID("link it first", warpcc_rtc_device_load(gpu, image, names[0], &function));
  warpcc_rtc_image_free(image);
  warpcc_rtc_device_free(gpu);
  warpcc_rtc_cache_free(cache);
}

static void runs_plans(const char *folder) {
  const uint64_t shape[] = {1000000};
  warpcc_rtc_tensor x = {0x1000000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT16};
  warpcc_rtc_tensor y = {0x1400000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT16};
  warpcc_rtc_tensor one = {0x1700000, NULL, NULL, 0, WARPCC_RTC_DTYPE_FLOAT32};
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_device *gpu;
  warpcc_rtc_launcher *launcher;
  warpcc_rtc_plan *plan;
  warpcc_rtc_counts counts;
  struct stand_in_launch *last = stand_in_last();
  int before = last->count;
  size_t kernels;
  uint64_t workspace;

  x.shape = y.shape = shape;
  OK(warpcc_rtc_device_open(0, &gpu));
  OK(warpcc_rtc_launcher_new(cache, gpu, &launcher));
  OK(warpcc_rtc_plan_unary("relu", &x, &y, WARPCC_RTC_WRITE_REPLACE, &plan));
  /* Warmed by the cache, found by the launcher. */
  OK(warpcc_rtc_plan_warm(plan, cache, "sm_90", NULL));
  OK(warpcc_rtc_launcher_run(launcher, plan, (CUstream_st *)0x990, NULL));
  CHECK(last->count == before + 1 && last->stream == (void *)0x990 && strcmp(last->name, "warpcc_row") == 0);
  OK(warpcc_rtc_launcher_counts(launcher, &counts));
  CHECK(counts.disk == 1 && counts.made == 0);
  warpcc_rtc_plan_free(plan);
  y.address = 0x10;
  OK(warpcc_rtc_plan_unary("relu", &x, &y, WARPCC_RTC_WRITE_REPLACE, &plan));
  INVALID("the output is at address 0x10, which the driver does not know",
          warpcc_rtc_launcher_run(launcher, plan, NULL, NULL));
  CHECK(last->count == before + 1);
  warpcc_rtc_plan_free(plan);
  OK(warpcc_rtc_plan_reduce("sum", &x, NULL, 0, &one, WARPCC_RTC_WRITE_REPLACE, &plan));
  OK(warpcc_rtc_plan_size(plan, &kernels, &workspace));
  CHECK(kernels == 2 && workspace > 0);
  OK(warpcc_rtc_launcher_run(launcher, plan, NULL, NULL));
  CHECK(last->count == before + 3 && last->stream == NULL);
  warpcc_rtc_plan_free(plan);
  warpcc_rtc_launcher_free(launcher);
  warpcc_rtc_device_free(gpu);
  warpcc_rtc_cache_free(cache);
  CHECK(stand_in_retained() == 0);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  launches(arguments[1]);
  takes_the_callers_context(arguments[1]);
  errors_of_the_driver(arguments[1]);
  runs_plans(arguments[1]);
  printf("done\n");
  return 0;
}
