/* What a hit costs from C: of an image from memory, and of a function by its texts and by a kernel at hand. Arguments: an
   empty folder, and the rounds. Where there is no driver, only images are measured. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "warpcc_rtc.h"

static warpcc_rtc_cache *cache;
static warpcc_rtc_request *request;
static warpcc_rtc_kernel *kernel;
static warpcc_rtc_device *gpu;
static char preamble[30 << 10], source[2 << 10];

static void ok(warpcc_rtc_status status) {
  if (status == WARPCC_RTC_STATUS_OK) return;
  fprintf(stderr, "%s\n", warpcc_rtc_error_text());
  exit(1);
}

static void by_request(void) {
  warpcc_rtc_image *image;
  ok(warpcc_rtc_cache_get(cache, request, NULL, &image));
  warpcc_rtc_image_free(image);
}

static void by_texts(void) {
  warpcc_rtc_function *function;
  ok(warpcc_rtc_cache_get_function(cache, "#define N 4", "k", source, strlen(source), gpu, NULL, &function));
  warpcc_rtc_function_free(function);
}

static void by_kernel(void) {
  warpcc_rtc_function *function;
  ok(warpcc_rtc_kernel_function(kernel, gpu, NULL, &function));
  warpcc_rtc_function_free(function);
}

static int less(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

/* The median of `rounds` times 100 calls, in microseconds. */
static void measure(const char *what, int rounds, void (*call)(void)) {
  double *took = malloc(sizeof *took * (size_t)rounds);
  int round, index;
  call();
  for (round = 0; round < rounds; ++round) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (index = 0; index < 100; ++index) call();
    clock_gettime(CLOCK_MONOTONIC, &end);
    took[round] = ((double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) / 1e3) / 100;
  }
  qsort(took, (size_t)rounds, sizeof *took, less);
  printf("%s: median %.3f us\n", what, took[rounds / 2]);
  free(took);
}

int main(int count, char **arguments) {
  warpcc_rtc_settings *settings;
  warpcc_rtc_request *common;
  int rounds = count > 2 ? atoi(arguments[2]) : 1000;
  if (count < 2 || rounds < 1) return 2;
  memset(preamble, '/', sizeof preamble - 1);
  snprintf(source, sizeof source, "extern \"C\" __global__ void k(float* x) { *x *= N; }\n");
  memset(source + strlen(source), '/', sizeof source - strlen(source) - 1);
  ok(warpcc_rtc_settings_new(&settings));
  ok(warpcc_rtc_settings_add_folder(settings, arguments[1], 0, 0));
  ok(warpcc_rtc_request_new("", "", 0, NULL, &common));
  ok(warpcc_rtc_request_add_preamble(common, "preamble", preamble, sizeof preamble - 1));
  ok(warpcc_rtc_cache_open(NULL, settings, common, &cache));
  ok(warpcc_rtc_request_new("k", source, strlen(source), "sm_90", &request));
  ok(warpcc_rtc_request_add_preamble(request, "preamble", preamble, sizeof preamble - 1));
  ok(warpcc_rtc_request_add_option(request, "-DN=4"));
  measure("image from memory, with a request at hand", rounds, by_request);
  if (warpcc_rtc_device_open(0, &gpu) == WARPCC_RTC_STATUS_OK) {
    ok(warpcc_rtc_kernel_new(cache, "#define N 4", "k", source, strlen(source), &kernel));
    measure("function from memory, by its texts", rounds, by_texts);
    measure("function from memory, with a kernel at hand", rounds, by_kernel);
    warpcc_rtc_kernel_free(kernel);
    warpcc_rtc_device_free(gpu);
  }
  warpcc_rtc_request_free(request);
  warpcc_rtc_request_free(common);
  warpcc_rtc_cache_free(cache);
  warpcc_rtc_settings_free(settings);
  return 0;
}
