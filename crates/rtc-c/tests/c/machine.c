/* One machine of several that share: asks for three kernels, one of them planned, and says where they were found. Arguments:
   a folder, and what names the shared caches: a text, or "-" for what the environment says. */
#include "check.h"

static void asks(warpcc_rtc_cache *cache) {
  static const uint64_t shape[] = {1000};
  warpcc_rtc_tensor x = {0x10000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT16};
  warpcc_rtc_tensor y = {0x20000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT16};
  warpcc_rtc_plan *plan;
  warpcc_rtc_image *image;
  const char *source = "template<class T> __global__ void scale(T* x) { *x *= N; }";
  OK(warpcc_rtc_cache_get_image(cache, "#define N 2", "scale<float>", source, TO_NUL, "compute_80", NULL, &image));
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_cache_get_image(cache, "#define N 3", "scale<int>", source, TO_NUL, "compute_90", NULL, &image));
  warpcc_rtc_image_free(image);
  x.shape = y.shape = shape;
  OK(warpcc_rtc_plan_unary("relu", &x, &y, WARPCC_RTC_WRITE_REPLACE, &plan));
  OK(warpcc_rtc_plan_warm(plan, cache, "compute_90", NULL));
  warpcc_rtc_plan_free(plan);
}

int main(int count, char **arguments) {
  warpcc_rtc_settings *settings;
  warpcc_rtc_cache *cache;
  warpcc_rtc_counts counts;
  char remarks[4096];
  int32_t waiting = -1;
  CHECK(count == 3);
  OK(warpcc_rtc_settings_new(&settings));
  OK(warpcc_rtc_settings_add_folder(settings, arguments[1], 0, 0));
  OK(warpcc_rtc_settings_remote(settings, strcmp(arguments[2], "-") == 0 ? NULL : arguments[2]));
  OK(warpcc_rtc_cache_open(NULL, settings, NULL, &cache));
  warpcc_rtc_settings_free(settings);
  asks(cache);
  OK(warpcc_rtc_cache_flush(cache, 60000, &waiting));
  OK(warpcc_rtc_cache_flush(cache, 0, NULL));
  OK(warpcc_rtc_cache_counts(cache, &counts));
  OK(warpcc_rtc_cache_remarks(cache, remarks, sizeof remarks, NULL));
  printf("disk %d, shared %d, made %d, waiting %d\n%s", (int)counts.disk, (int)counts.shared, (int)counts.made, (int)waiting,
         remarks);
  warpcc_rtc_cache_free(cache);
  /* One that shares with nobody has nothing to wait for. */
  cache = cache_in(arguments[1], NULL);
  OK(warpcc_rtc_cache_flush(cache, 1000, &waiting));
  CHECK(waiting == 0);
  warpcc_rtc_cache_free(cache);
  return 0;
}
