/* Wrong arguments of every kind: each is an error that names the argument, and everything goes on. Arguments: an empty
   folder. */
#include "check.h"

static const char *const NOT_UTF8 = "ab\xff" "c";

static void versions(void) {
  INVALID("interface 7", warpcc_rtc_check_abi(7));
  CHECK(strcmp(warpcc_rtc_status_name(WARPCC_RTC_STATUS_COMPILE), "compile") == 0);
  CHECK(strcmp(warpcc_rtc_status_name(12345), "unknown") == 0);
}

static void null_pointers(warpcc_rtc_cache *cache) {
  warpcc_rtc_request *request;
  warpcc_rtc_image *image = (warpcc_rtc_image *)&image;
  warpcc_rtc_kernel *kernel;
  warpcc_rtc_function *function;
  warpcc_rtc_compiler *compiler;
  const void *bytes;
  size_t length;

  INVALID("name: it is a null pointer", warpcc_rtc_request_new(NULL, "", TO_NUL, "sm_90", &request));
  CHECK(request == NULL);
  INVALID("source: it is a null pointer", warpcc_rtc_request_new("k", NULL, TO_NUL, "sm_90", &request));
  INVALID("source: it is a null pointer", warpcc_rtc_request_new("k", NULL, 5, "sm_90", &request));
  INVALID("request: it is a null pointer", warpcc_rtc_request_new("k", "", TO_NUL, "sm_90", NULL));
  INVALID("request", warpcc_rtc_request_add_option(NULL, "-DA"));
  OK(warpcc_rtc_request_new("k", "extern \"C\" __global__ void k() {}", TO_NUL, "sm_90", &request));
  INVALID("option", warpcc_rtc_request_add_option(request, NULL));
  INVALID("folder", warpcc_rtc_request_add_include_folder(request, NULL));
  INVALID("expression", warpcc_rtc_request_add_name(request, NULL));
  INVALID("text", warpcc_rtc_request_add_header(request, "a.h", NULL, TO_NUL));
  INVALID("name", warpcc_rtc_request_add_preamble(request, NULL, "", TO_NUL));
  INVALID("cache", warpcc_rtc_cache_get(NULL, request, NULL, &image));
  CHECK(image == NULL);
  INVALID("request", warpcc_rtc_cache_get(cache, NULL, NULL, &image));
  INVALID("image", warpcc_rtc_cache_get(cache, request, NULL, NULL));
  INVALID("compiler", warpcc_rtc_compile(NULL, request, NULL, &image));
  INVALID("parameters", warpcc_rtc_kernel_new(cache, NULL, "k", "", TO_NUL, &kernel));
  INVALID("device", warpcc_rtc_cache_get_function(cache, "", "k", "", TO_NUL, NULL, NULL, &function));
  INVALID("function", warpcc_rtc_cache_get_function(cache, "", "k", "", TO_NUL, NULL, NULL, NULL));
  INVALID("device", warpcc_rtc_device_capability(NULL, NULL));
  INVALID("compiler", warpcc_rtc_compiler_open(NULL, NULL));
  INVALID("image", warpcc_rtc_image_bytes(NULL, &bytes, &length));
  INVALID("linker", warpcc_rtc_link(NULL, "x", NULL, "sm_90", NULL, 0, &image));
  INVALID("pieces", warpcc_rtc_cache_get_linked(cache, "x", NULL, "sm_90", NULL, 0, NULL, &image));
  INVALID("counts", warpcc_rtc_cache_counts(cache, NULL));
  INVALID("buffer", warpcc_rtc_cache_remarks(cache, NULL, 5, &length));
  OK(warpcc_rtc_cache_remarks(cache, NULL, 0, NULL));
  INVALID("cancel", warpcc_rtc_cancel(NULL));
  INVALID("settings", warpcc_rtc_settings_memory(NULL, 1));
  INVALID("settings", warpcc_rtc_settings_remote(NULL, "none"));
  INVALID("cache", warpcc_rtc_cache_flush(NULL, 1, NULL));
  compiler = NULL;
  warpcc_rtc_compiler_free(compiler);
  warpcc_rtc_image_free(NULL);
  warpcc_rtc_request_free(NULL);
  warpcc_rtc_cache_free(NULL);
  warpcc_rtc_plan_free(NULL);
  CHECK(warpcc_rtc_function_cuda(NULL) == NULL && warpcc_rtc_function_name(NULL)[0] == 0);
  CHECK(warpcc_rtc_image_log(NULL)[0] == 0);
  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  warpcc_rtc_image_free(image);
  warpcc_rtc_request_free(request);
}

static void texts(warpcc_rtc_cache *cache) {
  warpcc_rtc_request *request;
  warpcc_rtc_image *image;
  warpcc_rtc_settings *settings;
  warpcc_rtc_pieces *pieces;

  INVALID("name: it is not UTF-8 at byte 2", warpcc_rtc_request_new(NOT_UTF8, "", TO_NUL, "sm_90", &request));
  INVALID("source: it is not UTF-8", warpcc_rtc_request_new("k", NOT_UTF8, 4, "sm_90", &request));
  INVALID("source: it has a NUL at byte 1", warpcc_rtc_request_new("k", "a\0b", 3, "sm_90", &request));
  INVALID("\"sm_x\"", warpcc_rtc_request_new("k", "", 0, "sm_x", &request));
  INVALID("not a target", warpcc_rtc_cache_load_ptx(cache, "k", ".version", 8, "compute_90", NULL, &image));
  OK(warpcc_rtc_request_new("k", "", 0, "sm_90", &request));
  INVALID("text: it has a NUL", warpcc_rtc_request_add_header(request, "a.h", "\0", 1));
  OK(warpcc_rtc_request_add_option(request, "-arch=sm_80"));
  INVALID("-arch=sm_80", warpcc_rtc_cache_get(cache, request, NULL, &image));
  warpcc_rtc_request_free(request);
  OK(warpcc_rtc_request_new("k", "", 0, "sm_90", &request));
  OK(warpcc_rtc_request_add_option(request, "--use-bundled-headers=/tmp/none"));
  INVALID("bundled", warpcc_rtc_cache_get(cache, request, NULL, &image));
  warpcc_rtc_request_free(request);
  INVALID("not a fat binary", warpcc_rtc_cache_get_fatbin(cache, "junk", "junk", 4, 90, 0, NULL, &image));
  OK(warpcc_rtc_settings_new(&settings));
  INVALID("not an absolute path", warpcc_rtc_settings_add_folder(settings, "here", 0, 0));
  INVALID("remote: ", warpcc_rtc_settings_remote(settings, "u:hunter2@nowhere"));
  CHECK(strstr(warpcc_rtc_error_text(), "hunter2") == NULL);
  INVALID("remote: it is not UTF-8", warpcc_rtc_settings_remote(settings, NOT_UTF8));
  warpcc_rtc_settings_free(settings);
  OK(warpcc_rtc_pieces_new(&pieces));
  INVALID("kind", warpcc_rtc_pieces_add_bytes(pieces, 1, "x", "x", 1));
  OK(warpcc_rtc_pieces_add_bytes(pieces, WARPCC_RTC_KIND_OBJECT, "x", "x", 1));
  INVALID("ELF", warpcc_rtc_cache_get_linked(cache, "x", pieces, "sm_90", NULL, 0, NULL, &image));
  INVALID("options", warpcc_rtc_cache_get_linked(cache, "x", pieces, "sm_90", NULL, 2, NULL, &image));
  INVALID("more than memory holds",
          warpcc_rtc_cache_get_linked(cache, "x", pieces, "sm_90", (const char *const *)&pieces, (size_t)-1 / 2, NULL,
                                      &image));
  warpcc_rtc_pieces_free(pieces);
}

static void sources(warpcc_rtc_cache *cache) {
  warpcc_rtc_image *image;
  warpcc_rtc_cancellation *cancel;
  warpcc_rtc_limits limits;
  const char *source = "__global__ void k(int* x) {\n  *x = nothing;\n}\n";
  const char *saved, *end;
  char path[4096];
  FILE *file;

  FAILS(WARPCC_RTC_STATUS_COMPILE, "nothing",
        warpcc_rtc_cache_get_image(cache, "", "k", source, TO_NUL, "sm_90", NULL, &image));
  CHECK(image == NULL);
  saved = strstr(warpcc_rtc_error_text(), "the source as NVRTC saw it: ");
  CHECK(saved != NULL);
  saved += strlen("the source as NVRTC saw it: ");
  end = saved + strcspn(saved, "\n");
  snprintf(path, sizeof path, "%.*s", (int)(end - saved), saved);
  file = fopen(path, "r");
  CHECK(file != NULL);
  fclose(file);
  FAILS(WARPCC_RTC_STATUS_COMPILE, "k", warpcc_rtc_cache_get_image(cache, "", "other", source, TO_NUL, "sm_90", NULL, &image));
  OK(warpcc_rtc_cancel_new(&cancel));
  limits.timeout_ms = 0;
  limits.cancel = cancel;
  OK(warpcc_rtc_cancel(cancel));
  FAILS(WARPCC_RTC_STATUS_CANCELLED, "cancelled",
        warpcc_rtc_cache_get_image(cache, "", "k", "__global__ void k() {}", TO_NUL, "sm_90", &limits, &image));
  warpcc_rtc_cancel_free(cancel);
  /* The text stays until the next error, whatever succeeds meanwhile. */
  OK(warpcc_rtc_cache_get_image(cache, "", "k", "__global__ void k() {}", TO_NUL, "sm_90", NULL, &image));
  CHECK(strstr(warpcc_rtc_error_text(), "cancelled") != NULL);
  warpcc_rtc_image_free(image);
}

static void libraries(void) {
  warpcc_rtc_compiler *compiler;
  warpcc_rtc_linker *linker;
  warpcc_rtc_fatbin_maker *maker;
  warpcc_rtc_device *device;
  char target[32];
  OK(warpcc_rtc_compiler_open(NULL, &compiler));
  /* A GPU newer than NVRTC takes PTX; one that is too old has nothing. */
  OK(warpcc_rtc_compiler_target_for(compiler, 999, target, sizeof target, NULL));
  CHECK(strncmp(target, "compute_", 8) == 0);
  FAILS(WARPCC_RTC_STATUS_UNSUPPORTED, "compute capability 2.0",
        warpcc_rtc_compiler_target_for(compiler, 20, target, sizeof target, NULL));
  warpcc_rtc_compiler_free(compiler);
  FAILS(WARPCC_RTC_STATUS_LIBRARY, "/nowhere", warpcc_rtc_compiler_open("/nowhere", &compiler));
  FAILS(WARPCC_RTC_STATUS_LIBRARY, "/nowhere", warpcc_rtc_linker_open("/nowhere", &linker));
  FAILS(WARPCC_RTC_STATUS_LIBRARY, "/nowhere", warpcc_rtc_fatbin_maker_open("/nowhere", &maker));
  INVALID("path: it is not UTF-8", warpcc_rtc_compiler_open(NOT_UTF8, &compiler));
  /* No driver, or no GPU of this number. */
  CHECK(warpcc_rtc_device_open(1000, &device) != WARPCC_RTC_STATUS_OK && device == NULL);
  CHECK(warpcc_rtc_error_length() > 0);
}

static void plans(void) {
  const uint64_t shape[] = {4, 5}, other[] = {3};
  const int64_t strides[] = {0, 1}, axes[] = {2};
  warpcc_rtc_tensor x = {0x1000, NULL, NULL, 2, WARPCC_RTC_DTYPE_FLOAT32};
  warpcc_rtc_tensor y = {0x2000, NULL, NULL, 2, WARPCC_RTC_DTYPE_FLOAT32};
  warpcc_rtc_tensor z = {0x3000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT32};
  warpcc_rtc_value values[2];
  warpcc_rtc_plan *plan;
  x.shape = y.shape = shape;
  z.shape = other;
  memset(values, 0, sizeof values);
  values[0].name = "x";
  values[0].tensor = &x;
  values[1].tensor = &z;
  INVALID("relu", warpcc_rtc_plan_unary("reul", &x, &y, 0, &plan));
  CHECK(plan == NULL);
  INVALID("write", warpcc_rtc_plan_unary("relu", &x, &y, 2, &plan));
  INVALID("x: it is a null pointer", warpcc_rtc_plan_unary("relu", NULL, &y, 0, &plan));
  INVALID("output: it is a null pointer", warpcc_rtc_plan_unary("relu", &x, NULL, 0, &plan));
  INVALID("x: dtype 99", (x.dtype = 99, warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  INVALID("x: dtype -1", (x.dtype = -1, warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  x.dtype = WARPCC_RTC_DTYPE_FLOAT32;
  INVALID("65 dimensions", (x.dimensions = 65, warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  x.dimensions = 2;
  INVALID("x: its shape", (x.shape = NULL, warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  INVALID("not aligned",
          (x.shape = (const uint64_t *)(const void *)((const char *)shape + 1), warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  x.shape = shape;
  INVALID("address 0", (x.address = 0, warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  INVALID("0x1001", (x.address = 0x1001, warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan)));
  x.address = 0x1000;
  y.strides = strides;
  INVALID("share memory", warpcc_rtc_plan_unary("relu", &x, &y, 0, &plan));
  y.strides = NULL;
  INVALID("broadcast", warpcc_rtc_plan_binary("add", &values[0], &values[1], &y, 0, &plan));
  values[1].kind = 5;
  INVALID("y: kind 5", warpcc_rtc_plan_binary("add", &values[0], &values[1], &y, 0, &plan));
  values[1].kind = WARPCC_RTC_VALUE_KIND_TENSOR;
  values[1].tensor = NULL;
  INVALID("y: it is a null pointer", warpcc_rtc_plan_binary("add", &values[0], &values[1], &y, 0, &plan));
  INVALID("expression", warpcc_rtc_plan_fused("relu(x", values, 1, &y, 0, &plan));
  INVALID("nope", warpcc_rtc_plan_fused("nope(x)", values, 1, &y, 0, &plan));
  INVALID("@", warpcc_rtc_plan_fused("x @ x", values, 1, &y, 0, &plan));
  INVALID("name of a value", warpcc_rtc_plan_fused("x", values, 2, &y, 0, &plan));
  INVALID("\"b\"", warpcc_rtc_plan_fused("x + b", values, 1, &y, 0, &plan));
  INVALID("values: it is a null pointer", warpcc_rtc_plan_fused("x", NULL, 1, &y, 0, &plan));
  INVALID("axis 2", warpcc_rtc_plan_reduce("sum", &x, axes, 1, &z, 0, &plan));
  INVALID("axes", warpcc_rtc_plan_reduce("sum", &x, NULL, 1, &z, 0, &plan));
  INVALID("norm2", warpcc_rtc_plan_reduce("norm", &x, NULL, 0, &z, 0, &plan));
  CHECK(plan == NULL);
}

int main(int count, char **arguments) {
  warpcc_rtc_cache *cache;
  CHECK(count == 2);
  CHECK(warpcc_rtc_error_text()[0] == 0 && warpcc_rtc_error_length() == 0);
  cache = cache_in(arguments[1], NULL);
  versions();
  null_pointers(cache);
  texts(cache);
  sources(cache);
  libraries();
  plans();
  warpcc_rtc_cache_free(cache);
  printf("done\n");
  return 0;
}
