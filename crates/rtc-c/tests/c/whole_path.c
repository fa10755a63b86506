/* Everything that needs no GPU: compile, cache, link, fat binaries, PTX, plans. Arguments: an empty folder. */
#include "check.h"

static const char *const SCALE =
    "#include \"types.h\"\n"
    "template<class T> __global__ void scale(T* x) { *x = *x * (T)(N * M); }\n";

static warpcc_rtc_request *scale(const char *target) {
  warpcc_rtc_request *request;
  OK(warpcc_rtc_request_new("scale.cu", SCALE, TO_NUL, target, &request));
  OK(warpcc_rtc_request_add_preamble(request, "parameters", "#define N 4\nrubbish", 11));
  OK(warpcc_rtc_request_add_header(request, "types.h", "#define M 2\n", TO_NUL));
  OK(warpcc_rtc_request_add_name(request, "scale<float>"));
  OK(warpcc_rtc_request_add_name(request, "scale<double>"));
  OK(warpcc_rtc_request_add_option(request, "--std=c++17"));
  return request;
}

static int begins(const warpcc_rtc_image *image, const char *magic) {
  const void *bytes;
  size_t length;
  OK(warpcc_rtc_image_bytes(image, &bytes, &length));
  return length > strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

static void compiles(void) {
  warpcc_rtc_compiler *compiler;
  warpcc_rtc_request *request = scale("sm_90");
  warpcc_rtc_image *image;
  warpcc_rtc_limits limits = {600000, NULL};
  uint32_t major, minor;
  char text[4096];
  size_t length;
  const char *name;

  OK(warpcc_rtc_compiler_open(NULL, &compiler));
  OK(warpcc_rtc_compiler_version(compiler, &major, &minor));
  CHECK(major == 13 || major == 12);
  OK(warpcc_rtc_compiler_library(compiler, text, sizeof text, &length));
  CHECK(strstr(text, "libnvrtc") != NULL && strlen(text) == length);
  OK(warpcc_rtc_compiler_target_for(compiler, 90, text, sizeof text, NULL));
  CHECK(strcmp(text, "sm_90") == 0);
  OK(warpcc_rtc_compile(compiler, request, &limits, &image));
  CHECK(begins(image, "\177ELF"));
  CHECK(strcmp(warpcc_rtc_image_target(image), "sm_90") == 0);
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_MADE);
  OK(warpcc_rtc_image_lowered_name(image, "scale<double>", &name));
  CHECK(strcmp(name, "_Z5scaleIdEvPT_") == 0);
  INVALID("scale<float>, scale<double>", warpcc_rtc_image_lowered_name(image, "other", &name));
  warpcc_rtc_image_free(image);
  warpcc_rtc_request_free(request);
  warpcc_rtc_compiler_free(compiler);
}

static void is_kept(const char *folder) {
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_request *request = scale("sm_90");
  warpcc_rtc_image *image;
  warpcc_rtc_counts counts;
  char key[65];
  char remarks[8] = "unused";
  size_t length;

  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_MADE);
  CHECK(strlen(warpcc_rtc_image_key(image)) == 64);
  strcpy(key, warpcc_rtc_image_key(image));
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_MEMORY);
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_cache_remarks(cache, remarks, sizeof remarks, &length));
  CHECK(length == 0 && remarks[0] == 0);
  warpcc_rtc_cache_free(cache);

  cache = cache_in(folder, NULL);
  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_DISK);
  CHECK(strcmp(warpcc_rtc_image_key(image), key) == 0);
  warpcc_rtc_image_free(image);
  /* Another option is another image. */
  OK(warpcc_rtc_request_add_option(request, "-DUNUSED"));
  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_MADE);
  CHECK(strcmp(warpcc_rtc_image_key(image), key) != 0);
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_cache_counts(cache, &counts));
  CHECK(counts.made == 1 && counts.disk == 1 && counts.memory == 0 && counts.shared == 0);
  warpcc_rtc_request_free(request);
  warpcc_rtc_cache_free(cache);
}

static void by_text(const char *folder) {
  warpcc_rtc_request *common;
  warpcc_rtc_cache *cache;
  warpcc_rtc_image *image;
  OK(warpcc_rtc_request_new("", "", TO_NUL, NULL, &common));
  OK(warpcc_rtc_request_add_preamble(common, "common.h", "#define M 3\n", TO_NUL));
  cache = cache_in(folder, common);
  warpcc_rtc_request_free(common);
  OK(warpcc_rtc_cache_get_image(cache, "#define N 5", "k", "__global__ void k(int* x) { *x = N * M; } junk", 41,
                                "compute_90", NULL, &image));
  CHECK(begins(image, "//"));
  {
    const void *bytes;
    size_t length;
    OK(warpcc_rtc_image_bytes(image, &bytes, &length));
    /* N * M */
    CHECK(memchr(bytes, 0, length) == NULL);
    warpcc_rtc_image *cubin;
    OK(warpcc_rtc_cache_load_ptx(cache, "k.ptx", bytes, length, "sm_90", NULL, &cubin));
    CHECK(begins(cubin, "\177ELF") && warpcc_rtc_image_found(cubin) == WARPCC_RTC_FOUND_MADE);
    warpcc_rtc_image_free(cubin);
    OK(warpcc_rtc_cache_load_ptx(cache, "k.ptx", bytes, length, "sm_90", NULL, &cubin));
    CHECK(warpcc_rtc_image_found(cubin) == WARPCC_RTC_FOUND_MEMORY);
    warpcc_rtc_image_free(cubin);
  }
  warpcc_rtc_image_free(image);
  warpcc_rtc_cache_free(cache);
}

static warpcc_rtc_image *compiled(warpcc_rtc_cache *cache, const char *source, const char *target) {
  warpcc_rtc_request *request;
  warpcc_rtc_image *image;
  OK(warpcc_rtc_request_new("piece.cu", source, TO_NUL, target, &request));
  OK(warpcc_rtc_request_add_option(request, "-rdc=true"));
  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  warpcc_rtc_request_free(request);
  return image;
}

static const char *const CALLER =
    "extern \"C\" __device__ int twice(int);\n"
    "extern \"C\" __global__ void k(int* x) { *x = twice(*x); }\n";
static const char *const CALLEE = "extern \"C\" __device__ int twice(int x) { return 2 * x; }\n";

static void links(const char *folder) {
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_linker *linker;
  warpcc_rtc_pieces *pieces;
  warpcc_rtc_image *image;
  const char *options[] = {"-lineinfo"};

  OK(warpcc_rtc_pieces_new(&pieces));
  image = compiled(cache, CALLER, "lto_90");
  OK(warpcc_rtc_pieces_add_image(pieces, "caller", image));
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_linker_open(NULL, &linker));
  FAILS(WARPCC_RTC_STATUS_LINK, "twice", warpcc_rtc_link(linker, "both", pieces, "sm_90", NULL, 0, &image));
  CHECK(image == NULL);
  image = compiled(cache, CALLEE, "lto_90");
  OK(warpcc_rtc_pieces_add_image(pieces, "callee", image));
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_link(linker, "both", pieces, "sm_90", options, 1, &image));
  CHECK(begins(image, "\177ELF"));
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_cache_get_linked(cache, "both", pieces, "sm_90", options, 1, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_MADE);
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_cache_get_linked(cache, "both", pieces, "sm_90", options, 1, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_MEMORY);
  warpcc_rtc_image_free(image);
  warpcc_rtc_pieces_free(pieces);
  warpcc_rtc_linker_free(linker);
  warpcc_rtc_cache_free(cache);
}

static void makes_a_fat_binary(const char *folder) {
  static const char *const targets[] = {"sm_80", "sm_90", "compute_90"};
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_fatbin_maker *maker;
  warpcc_rtc_fatbin *fatbin;
  warpcc_rtc_pieces *pieces;
  warpcc_rtc_image *image, *again;
  const void *bytes;
  size_t length, index;
  const char *options[] = {"-compress=false"};
  const char *wrong[] = {"-no-such-option"};

  OK(warpcc_rtc_fatbin_maker_open(NULL, &maker));
  OK(warpcc_rtc_pieces_new(&pieces));
  INVALID("nothing", warpcc_rtc_fatbin_make(maker, pieces, NULL, 0, &fatbin));
  for (index = 0; index < 3; ++index) {
    image = compiled(cache, CALLEE, targets[index]);
    OK(warpcc_rtc_pieces_add_image(pieces, "callee", image));
    warpcc_rtc_image_free(image);
  }
  FAILS(WARPCC_RTC_STATUS_FATBIN, "fat binary", warpcc_rtc_fatbin_make(maker, pieces, wrong, 1, &fatbin));
  OK(warpcc_rtc_fatbin_make(maker, pieces, options, 1, &fatbin));
  OK(warpcc_rtc_fatbin_bytes(fatbin, &bytes, &length));
  CHECK(length > 1000 && memcmp(bytes, "\x50\xed\x55\xba", 4) == 0);
  /* What a driver would take of it is what was put in. */
  OK(warpcc_rtc_cache_get_fatbin(cache, "all", bytes, length, 80, 13000, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_GIVEN);
  CHECK(strcmp(warpcc_rtc_image_target(image), "sm_80") == 0);
  again = compiled(cache, CALLEE, "sm_80");
  {
    const void *got, *put;
    size_t got_length, put_length;
    OK(warpcc_rtc_image_bytes(image, &got, &got_length));
    OK(warpcc_rtc_image_bytes(again, &put, &put_length));
    CHECK(got_length >= put_length && memcmp(got, put, put_length) == 0);
  }
  warpcc_rtc_image_free(again);
  warpcc_rtc_image_free(image);
  OK(warpcc_rtc_pieces_add_bytes(pieces, WARPCC_RTC_KIND_FATBIN, "more", bytes, length));
  warpcc_rtc_fatbin_free(fatbin);
  INVALID("\"more\" is a fatbin", warpcc_rtc_fatbin_make(maker, pieces, NULL, 0, &fatbin));
  CHECK(fatbin == NULL);
  warpcc_rtc_pieces_free(pieces);
  warpcc_rtc_fatbin_maker_free(maker);
  warpcc_rtc_cache_free(cache);
}

static void plans_and_warms(const char *folder) {
  const uint64_t shape[] = {100, 200}, column[] = {200};
  const int64_t axes[] = {-1};
  warpcc_rtc_tensor x = {0x10000, NULL, NULL, 2, WARPCC_RTC_DTYPE_FLOAT16};
  warpcc_rtc_tensor b = {0x90000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT32};
  warpcc_rtc_tensor y = {0x200000, NULL, NULL, 2, WARPCC_RTC_DTYPE_FLOAT16};
  warpcc_rtc_tensor rows = {0x300000, NULL, NULL, 1, WARPCC_RTC_DTYPE_FLOAT32};
  warpcc_rtc_value values[3];
  warpcc_rtc_plan *plans[4];
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  warpcc_rtc_counts counts;
  size_t index, kernels, all = 0;
  uint64_t workspace;

  x.shape = y.shape = shape;
  b.shape = column;
  rows.shape = shape;
  memset(values, 0, sizeof values);
  values[0].name = "x";
  values[0].tensor = &x;
  values[1].name = "b";
  values[1].tensor = &b;
  values[2].name = "a";
  values[2].kind = WARPCC_RTC_VALUE_KIND_FLOAT;
  values[2].number = 2.5;
  OK(warpcc_rtc_plan_fused("relu(a * x + b)", values, 3, &y, WARPCC_RTC_WRITE_REPLACE, &plans[0]));
  OK(warpcc_rtc_plan_unary("gelu", &x, &y, WARPCC_RTC_WRITE_ADD, &plans[1]));
  OK(warpcc_rtc_plan_binary("add", &values[0], &values[1], &y, WARPCC_RTC_WRITE_REPLACE, &plans[2]));
  OK(warpcc_rtc_plan_reduce("sum", &x, axes, 1, &rows, WARPCC_RTC_WRITE_REPLACE, &plans[3]));
  for (index = 0; index < 4; ++index) {
    OK(warpcc_rtc_plan_size(plans[index], &kernels, &workspace));
    CHECK(kernels >= 1);
    all += kernels;
    OK(warpcc_rtc_plan_warm(plans[index], cache, "compute_90", NULL));
    OK(warpcc_rtc_plan_warm(plans[index], cache, "compute_90", NULL));
    warpcc_rtc_plan_free(plans[index]);
  }
  OK(warpcc_rtc_cache_counts(cache, &counts));
  CHECK(counts.made == all && counts.memory == all);
  warpcc_rtc_cache_free(cache);
}

static void carries_headers(const char *folder) {
  warpcc_rtc_compiler *compiler;
  warpcc_rtc_request *request;
  warpcc_rtc_image *image;
  char headers[4096];
  uint32_t major, minor;
  warpcc_rtc_status status;
  snprintf(headers, sizeof headers, "%s/headers", folder);
  OK(warpcc_rtc_compiler_open(NULL, &compiler));
  OK(warpcc_rtc_compiler_version(compiler, &major, &minor));
  OK(warpcc_rtc_request_new("k", "#include <cuda_fp16.h>\n__global__ void k(half* x) { *x = *x + *x; }", TO_NUL,
                            "compute_90", &request));
  status = warpcc_rtc_compiler_install_headers(compiler, headers, request);
  if (status == WARPCC_RTC_STATUS_OK) {
    OK(warpcc_rtc_compile(compiler, request, NULL, &image));
    warpcc_rtc_image_free(image);
    printf("headers: yes\n");
  } else {
    CHECK(status == WARPCC_RTC_STATUS_UNSUPPORTED && strstr(warpcc_rtc_error_text(), "13.3") != NULL);
    printf("headers: no\n");
  }
  printf("version: %u.%u\n", major, minor);
  warpcc_rtc_request_free(request);
  warpcc_rtc_compiler_free(compiler);
}

struct told {
  size_t calls, last, failed;
  int stop;
};

static int32_t listen(void *user, size_t done, size_t total, const char *name, warpcc_rtc_status status) {
  struct told *told = user;
  CHECK(done == told->last + 1 && done <= total && name[0] == 'm');
  told->last = done;
  told->calls++;
  told->failed += status != WARPCC_RTC_STATUS_OK;
  return !told->stop;
}

static void many_at_once(const char *folder) {
  enum { COUNT = 4 };
  const warpcc_rtc_request *requests[COUNT];
  warpcc_rtc_image *images[COUNT];
  warpcc_rtc_cache *cache = cache_in(folder, NULL);
  struct told told = {0, 0, 0, 0};
  size_t index;
  for (index = 0; index < COUNT; ++index) {
    char name[16], source[80];
    warpcc_rtc_request *request;
    snprintf(name, sizeof name, "m%zu", index);
    snprintf(source, sizeof source, "extern \"C\" __global__ void m(int* x) { *x = %s%zu; }", index == 2 ? "oops" : "", index);
    OK(warpcc_rtc_request_new(name, source, TO_NUL, "compute_90", &request));
    OK(warpcc_rtc_request_file(request, "src/many.cu"));
    requests[index] = request;
  }
  FAILS(WARPCC_RTC_STATUS_COMPILE, "src/many.cu:1: ",
        warpcc_rtc_cache_get_many(cache, requests, COUNT, 2, NULL, listen, &told, images));
  CHECK(told.calls == COUNT && told.failed == 1 && images[2] == NULL);
  for (index = 0; index < COUNT; ++index) {
    CHECK(index == 2 || begins(images[index], "//"));
    warpcc_rtc_image_free(images[index]);
  }
  OK(warpcc_rtc_cache_get_many(cache, requests, 2, 0, NULL, NULL, NULL, images));
  CHECK(warpcc_rtc_image_found(images[1]) == WARPCC_RTC_FOUND_MEMORY);
  for (index = 0; index < 2; ++index) warpcc_rtc_image_free(images[index]);
  OK(warpcc_rtc_cache_get_many(cache, NULL, 0, 0, NULL, NULL, NULL, NULL));
  INVALID("images", warpcc_rtc_cache_get_many(cache, requests, 1, 0, NULL, NULL, NULL, NULL));
  INVALID("requests", warpcc_rtc_cache_get_many(cache, NULL, 1, 0, NULL, NULL, NULL, images));
  CHECK(images[0] == NULL);
  INVALID("cache", warpcc_rtc_cache_get_many(NULL, requests, 1, 0, NULL, NULL, NULL, images));
  for (index = 0; index < COUNT; ++index) warpcc_rtc_request_free((warpcc_rtc_request *)requests[index]);
  warpcc_rtc_cache_free(cache);
}

/* What `from` keeps as a pack of a cache whose own folder is empty. */
static void from_a_pack(const char *folder) {
  char empty[4096];
  warpcc_rtc_settings *settings;
  warpcc_rtc_cache *cache;
  warpcc_rtc_request *request = scale("sm_90");
  warpcc_rtc_image *image;
  size_t length;
  snprintf(empty, sizeof empty, "%s/empty", folder);
  OK(warpcc_rtc_settings_new(&settings));
  OK(warpcc_rtc_settings_add_folder(settings, empty, 0, 0));
  OK(warpcc_rtc_settings_add_pack(settings, folder));
  OK(warpcc_rtc_cache_open(NULL, settings, NULL, &cache));
  OK(warpcc_rtc_cache_get(cache, request, NULL, &image));
  CHECK(warpcc_rtc_image_found(image) == WARPCC_RTC_FOUND_DISK);
  warpcc_rtc_image_free(image);
  warpcc_rtc_cache_free(cache);
  OK(warpcc_rtc_settings_add_pack(settings, "/no/such.warpcc-pack"));
  OK(warpcc_rtc_cache_open(NULL, settings, NULL, &cache));
  OK(warpcc_rtc_cache_remarks(cache, empty, sizeof empty, &length));
  CHECK(strstr(empty, "/no/such.warpcc-pack") != NULL);
  warpcc_rtc_cache_free(cache);
  warpcc_rtc_settings_free(settings);
  warpcc_rtc_request_free(request);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  OK(warpcc_rtc_check_abi(WARPCC_RTC_ABI));
  CHECK(warpcc_rtc_abi() == WARPCC_RTC_ABI && strchr(warpcc_rtc_version(), '.') != NULL);
  compiles();
  is_kept(arguments[1]);
  by_text(arguments[1]);
  many_at_once(arguments[1]);
  from_a_pack(arguments[1]);
  links(arguments[1]);
  makes_a_fat_binary(arguments[1]);
  plans_and_warms(arguments[1]);
  carries_headers(arguments[1]);
  printf("done\n");
  return 0;
}
