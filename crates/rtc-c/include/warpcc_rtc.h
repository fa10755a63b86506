/* warpcc-rtc: kernels as text, compiled, kept, loaded and launched at run time.

   Made of crates/rtc-c/src by `cargo xtask header`; do not edit. docs/rtc-c.md tells how to use it.

   Every function that can fail returns a status; warpcc_rtc_error_text() has the text of this thread's last error.
   Handles are freed by the function that ends in _free and has their name; null is allowed there. Any thread may use
   any handle. Texts are UTF-8 and end at their NUL, or have a length next to them. */

#ifndef WARPCC_RTC_H
#define WARPCC_RTC_H

#include <stddef.h>
#include <stdint.h>

/** In place of a text's length: it ends at its first NUL. */
#define WARPCC_RTC_TO_NUL ((size_t)-1)

/**
 * The number of this interface. It changes when a program that was compiled against an older header would no longer run
 * rightly; what only adds functions or numbers leaves it.
 */
#define WARPCC_RTC_ABI 1

/**
 * The version of the header, as `warpcc_rtc_version` has the library's.
 */
#define WARPCC_RTC_VERSION_MAJOR 0

/**
 * Likewise.
 */
#define WARPCC_RTC_VERSION_MINOR 1

/**
 * Likewise.
 */
#define WARPCC_RTC_VERSION_PATCH 0



/**
 * What a function answers. The numbers stay; there may be more of them later.
 */
enum warpcc_rtc_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It is done.
   */
  WARPCC_RTC_STATUS_OK = 0,
  /**
   * A library of NVIDIA's is not to be found, or does not load; the text lists what was tried.
   */
  WARPCC_RTC_STATUS_LIBRARY = 1,
  /**
   * An argument is wrong; the text names it.
   */
  WARPCC_RTC_STATUS_INVALID = 2,
  /**
   * This version of a library, or this GPU, cannot do it.
   */
  WARPCC_RTC_STATUS_UNSUPPORTED = 3,
  /**
   * The source does not compile; the text has the place, the log, the options and the file where the whole is kept.
   */
  WARPCC_RTC_STATUS_COMPILE = 4,
  /**
   * The images do not link.
   */
  WARPCC_RTC_STATUS_LINK = 5,
  /**
   * It was cancelled.
   */
  WARPCC_RTC_STATUS_CANCELLED = 6,
  /**
   * It took longer than allowed.
   */
  WARPCC_RTC_STATUS_DEADLINE = 7,
  /**
   * A library of NVIDIA's failed in a way that is not about the text.
   */
  WARPCC_RTC_STATUS_CALL = 8,
  /**
   * The driver refused: `warpcc_rtc_error_driver` has its number.
   */
  WARPCC_RTC_STATUS_DRIVER = 9,
  /**
   * A file or folder could not be used.
   */
  WARPCC_RTC_STATUS_FILE = 10,
  /**
   * An image does not go into a fat binary.
   */
  WARPCC_RTC_STATUS_FATBIN = 11,
  /**
   * A mistake in this library, which it has survived.
   */
  WARPCC_RTC_STATUS_INTERNAL = 100,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum warpcc_rtc_status warpcc_rtc_status;
#else
typedef int32_t warpcc_rtc_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where an image was found.
 */
enum warpcc_rtc_found
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * In this process's memory.
   */
  WARPCC_RTC_FOUND_MEMORY = 0,
  /**
   * In a folder.
   */
  WARPCC_RTC_FOUND_DISK = 1,
  /**
   * In a shared cache.
   */
  WARPCC_RTC_FOUND_SHARED = 2,
  /**
   * Nowhere: it was made.
   */
  WARPCC_RTC_FOUND_MADE = 3,
  /**
   * In what the caller gave.
   */
  WARPCC_RTC_FOUND_GIVEN = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum warpcc_rtc_found warpcc_rtc_found;
#else
typedef int32_t warpcc_rtc_found;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a piece is that is no image of this library's.
 */
enum warpcc_rtc_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A fat binary, of which the fitting image is taken.
   */
  WARPCC_RTC_KIND_FATBIN = 4,
  /**
   * A host object with a fat binary inside.
   */
  WARPCC_RTC_KIND_OBJECT = 5,
  /**
   * A library of such objects.
   */
  WARPCC_RTC_KIND_LIBRARY = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum warpcc_rtc_kind warpcc_rtc_kind;
#else
typedef int32_t warpcc_rtc_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * An element's type. docs/kernels.md says in what each is computed.
 */
enum warpcc_rtc_dtype
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * One byte: 0 is false, all else true.
   */
  WARPCC_RTC_DTYPE_BOOL = 0,
  /**
   * 8 bits with a sign.
   */
  WARPCC_RTC_DTYPE_INT8 = 1,
  /**
   * 8 bits without.
   */
  WARPCC_RTC_DTYPE_UINT8 = 2,
  /**
   * 16 bits with a sign.
   */
  WARPCC_RTC_DTYPE_INT16 = 3,
  /**
   * 16 bits without.
   */
  WARPCC_RTC_DTYPE_UINT16 = 4,
  /**
   * 32 bits with a sign.
   */
  WARPCC_RTC_DTYPE_INT32 = 5,
  /**
   * 32 bits without.
   */
  WARPCC_RTC_DTYPE_UINT32 = 6,
  /**
   * 64 bits with a sign.
   */
  WARPCC_RTC_DTYPE_INT64 = 7,
  /**
   * 64 bits without.
   */
  WARPCC_RTC_DTYPE_UINT64 = 8,
  /**
   * IEEE binary16.
   */
  WARPCC_RTC_DTYPE_FLOAT16 = 9,
  /**
   * The upper half of a binary32.
   */
  WARPCC_RTC_DTYPE_BFLOAT16 = 10,
  /**
   * OCP 8-bit, 4 bits of exponent.
   */
  WARPCC_RTC_DTYPE_FLOAT8_E4M3 = 11,
  /**
   * OCP 8-bit, 5 bits of exponent.
   */
  WARPCC_RTC_DTYPE_FLOAT8_E5M2 = 12,
  /**
   * IEEE binary32.
   */
  WARPCC_RTC_DTYPE_FLOAT32 = 13,
  /**
   * IEEE binary64.
   */
  WARPCC_RTC_DTYPE_FLOAT64 = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum warpcc_rtc_dtype warpcc_rtc_dtype;
#else
typedef int32_t warpcc_rtc_dtype;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What becomes of a result.
 */
enum warpcc_rtc_write
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It replaces what the output holds.
   */
  WARPCC_RTC_WRITE_REPLACE = 0,
  /**
   * It is added to what the output holds.
   */
  WARPCC_RTC_WRITE_ADD = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum warpcc_rtc_write warpcc_rtc_write;
#else
typedef int32_t warpcc_rtc_write;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a value is.
 */
enum warpcc_rtc_value_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * An array.
   */
  WARPCC_RTC_VALUE_KIND_TENSOR = 0,
  /**
   * A number with a point.
   */
  WARPCC_RTC_VALUE_KIND_FLOAT = 1,
  /**
   * A whole number.
   */
  WARPCC_RTC_VALUE_KIND_INT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum warpcc_rtc_value_kind warpcc_rtc_value_kind;
#else
typedef int32_t warpcc_rtc_value_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The driver's function: `CUfunction` is a pointer to it.
 */
typedef struct CUfunc_st CUfunc_st;

/**
 * The driver's stream: `CUstream` is a pointer to it, and so is the runtime's `cudaStream_t`.
 */
typedef struct CUstream_st CUstream_st;

/**
 * Kernels as text in, images and functions out, each compiled once.
 */
typedef struct warpcc_rtc_cache warpcc_rtc_cache;

/**
 * How a cache behaves.
 */
typedef struct warpcc_rtc_settings warpcc_rtc_settings;

/**
 * A request to give up, which any thread may make.
 */
typedef struct warpcc_rtc_cancellation warpcc_rtc_cancellation;

/**
 * A program to compile.
 */
typedef struct warpcc_rtc_request warpcc_rtc_request;

/**
 * NVRTC, ready to compile.
 */
typedef struct warpcc_rtc_compiler warpcc_rtc_compiler;

/**
 * A GPU with a context.
 */
typedef struct warpcc_rtc_device warpcc_rtc_device;

/**
 * A fat binary.
 */
typedef struct warpcc_rtc_fatbin warpcc_rtc_fatbin;

/**
 * nvFatbin, ready to make fat binaries.
 */
typedef struct warpcc_rtc_fatbin_maker warpcc_rtc_fatbin_maker;

/**
 * A kernel on a GPU, ready to launch. Its module stays loaded as long as it lives.
 */
typedef struct warpcc_rtc_function warpcc_rtc_function;

/**
 * A compiled or linked image: machine code, PTX or LTO-IR, with its names and log.
 */
typedef struct warpcc_rtc_image warpcc_rtc_image;

/**
 * A kernel's texts, read and hashed once, in a cache.
 */
typedef struct warpcc_rtc_kernel warpcc_rtc_kernel;

/**
 * Starts plans on a GPU.
 */
typedef struct warpcc_rtc_launcher warpcc_rtc_launcher;

/**
 * nvJitLink, ready to link.
 */
typedef struct warpcc_rtc_linker warpcc_rtc_linker;

/**
 * Images and more, to be linked or put into a fat binary, in order.
 */
typedef struct warpcc_rtc_pieces warpcc_rtc_pieces;

/**
 * Kernels to start one after another: checked, and ready to run any number of times.
 */
typedef struct warpcc_rtc_plan warpcc_rtc_plan;

/**
 * How long something may take. Null in its place: as long as it takes.
 */
typedef struct {
  /**
   * From the call on, in milliseconds; 0: no limit.
   */
  uint64_t timeout_ms;
  /**
   * Who may ask to give up; null: nobody. NVRTC before 12.8 cannot be stopped: then it is asked before it starts.
   */
  const warpcc_rtc_cancellation *cancel;
} warpcc_rtc_limits;

/**
 * How often images were found, and where.
 */
typedef struct {
  /**
   * In memory.
   */
  uint64_t memory;
  /**
   * In a folder.
   */
  uint64_t disk;
  /**
   * In a shared cache.
   */
  uint64_t shared;
  /**
   * Nowhere.
   */
  uint64_t made;
} warpcc_rtc_counts;

/**
 * A grid of blocks, and a block of threads.
 */
typedef struct {
  /**
   * Blocks in x, y and z.
   */
  uint32_t grid[3];
  /**
   * Threads of a block in x, y and z.
   */
  uint32_t block[3];
  /**
   * Dynamic shared memory of a block, in bytes.
   */
  uint32_t shared;
} warpcc_rtc_shape;

/**
 * An array on the device.
 */
typedef struct {
  /**
   * The device address of element 0, 0, …
   */
  uint64_t address;
  /**
   * Its sizes, outermost first.
   */
  const uint64_t *shape;
  /**
   * Steps between neighbours in each dimension, in elements; null: rows one after another.
   */
  const int64_t *strides;
  /**
   * How many sizes, and steps, there are; 0 for a single element.
   */
  uint32_t dimensions;
  /**
   * `warpcc_rtc_dtype`
   */
  int32_t dtype;
} warpcc_rtc_tensor;

/**
 * What a name in an expression refers to. A number is an argument of the kernel: another value needs no other kernel.
 */
typedef struct {
  /**
   * Its name in the expression; not looked at by `warpcc_rtc_plan_binary`.
   */
  const char *name;
  /**
   * The array, for `WARPCC_RTC_VALUE_KIND_TENSOR`.
   */
  const warpcc_rtc_tensor *tensor;
  /**
   * The number, for `WARPCC_RTC_VALUE_KIND_FLOAT`.
   */
  double number;
  /**
   * The number, for `WARPCC_RTC_VALUE_KIND_INT`.
   */
  int64_t integer;
  /**
   * `warpcc_rtc_value_kind`
   */
  int32_t kind;
} warpcc_rtc_value;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The library's version: "0.1.0".
 */
const char *warpcc_rtc_version(void);

/**
 * The number of the library's interface.
 */
uint32_t warpcc_rtc_abi(void);

/**
 * Whether the library is the one that the program was compiled for: call it first, with `WARPCC_RTC_ABI`.
 */
warpcc_rtc_status warpcc_rtc_check_abi(uint32_t abi);

/**
 * The text of the last error on this thread, UTF-8 with a NUL at its end; empty where there was none. It stays until
 * the next error on this thread. Functions that succeed leave it as it is.
 */
const char *warpcc_rtc_error_text(void);

/**
 * The length of that text in bytes, without the NUL.
 */
size_t warpcc_rtc_error_length(void);

/**
 * The driver's number (`CUresult`) of the last error on this thread; 0 where it was none of the driver's.
 */
uint32_t warpcc_rtc_error_driver(void);

/**
 * A status in a word: "invalid".
 */
const char *warpcc_rtc_status_name(int32_t status);

/**
 * Makes a request to give up that nobody has made yet.
 */
warpcc_rtc_status warpcc_rtc_cancel_new(warpcc_rtc_cancellation **cancel);

/**
 * Asks whatever was given this to give up.
 */
warpcc_rtc_status warpcc_rtc_cancel(const warpcc_rtc_cancellation *cancel);

/**
 * Frees it; what was given it goes on.
 */
void warpcc_rtc_cancel_free(warpcc_rtc_cancellation *cancel);

/**
 * Makes a request: what messages call the program, its source, and for what it is compiled ("sm_90" for machine code,
 * "compute_90" for PTX, "lto_90" for LTO-IR). `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
 *
 * For `warpcc_rtc_cache_open`, which takes only texts, folders and options of it, name and source may be "" and the
 * target null.
 */
warpcc_rtc_status warpcc_rtc_request_new(const char *name,
                                         const char *source,
                                         size_t length,
                                         const char *target,
                                         warpcc_rtc_request **request);

/**
 * A text of `length` bytes (or `WARPCC_RTC_TO_NUL`) to stand before the source, behind those given so far. Messages call
 * it `name` and count its lines by themselves.
 */
warpcc_rtc_status warpcc_rtc_request_add_preamble(const warpcc_rtc_request *request,
                                                  const char *name,
                                                  const char *text,
                                                  size_t length);

/**
 * A header of `length` bytes (or `WARPCC_RTC_TO_NUL`), by the very name that `#include` says.
 */
warpcc_rtc_status warpcc_rtc_request_add_header(const warpcc_rtc_request *request,
                                                const char *name,
                                                const char *text,
                                                size_t length);

/**
 * A folder in which headers are looked for, behind those given so far. With none, NVRTC opens no file at all.
 */
warpcc_rtc_status warpcc_rtc_request_add_include_folder(const warpcc_rtc_request *request,
                                                        const char *folder);

/**
 * A name as C++ has it (`scale<float>`), whose name in the image is wanted.
 */
warpcc_rtc_status warpcc_rtc_request_add_name(const warpcc_rtc_request *request, const char *expression);

/**
 * An option, as NVRTC takes it, in one piece: "--std=c++20", "-DN=4".
 */
warpcc_rtc_status warpcc_rtc_request_add_option(const warpcc_rtc_request *request, const char *option);

/**
 * Whether NVRTC may keep the headers it has read for the next program of this process (12.8): 0 or 1.
 */
warpcc_rtc_status warpcc_rtc_request_precompile_headers(const warpcc_rtc_request *request,
                                                        int32_t precompile);

/**
 * Frees it.
 */
void warpcc_rtc_request_free(warpcc_rtc_request *request);

/**
 * Finds NVRTC: at `path` (the library or its folder), or with null where docs/rtc.md says.
 */
warpcc_rtc_status warpcc_rtc_compiler_open(const char *path, warpcc_rtc_compiler **compiler);

/**
 * NVRTC's version.
 */
warpcc_rtc_status warpcc_rtc_compiler_version(const warpcc_rtc_compiler *compiler,
                                              uint32_t *major,
                                              uint32_t *minor);

/**
 * Copies the path of NVRTC's file into `buffer`, as `warpcc_rtc_cache_remarks` does.
 */
warpcc_rtc_status warpcc_rtc_compiler_library(const warpcc_rtc_compiler *compiler,
                                              char *buffer,
                                              size_t size,
                                              size_t *length);

/**
 * Copies the best target for a GPU of compute capability `capability` (ten times major plus minor: 90) into `buffer`, as
 * `warpcc_rtc_cache_remarks` does: "sm_90"; PTX for a GPU newer than NVRTC. 32 bytes are enough.
 */
warpcc_rtc_status warpcc_rtc_compiler_target_for(const warpcc_rtc_compiler *compiler,
                                                 uint32_t capability,
                                                 char *buffer,
                                                 size_t size,
                                                 size_t *length);

/**
 * Writes the headers that NVRTC carries with it (13.3 and newer) into `folder`, unless they are there, and adds the
 * include folders for them to `request`.
 */
warpcc_rtc_status warpcc_rtc_compiler_install_headers(const warpcc_rtc_compiler *compiler,
                                                      const char *folder,
                                                      const warpcc_rtc_request *request);

/**
 * Compiles; no cache.
 */
warpcc_rtc_status warpcc_rtc_compile(const warpcc_rtc_compiler *compiler,
                                     const warpcc_rtc_request *request,
                                     const warpcc_rtc_limits *limits,
                                     warpcc_rtc_image **image);

/**
 * Frees it; what it made stays.
 */
void warpcc_rtc_compiler_free(warpcc_rtc_compiler *compiler);

/**
 * An image of bytes that the program has: `target` says what they are ("sm_90", "compute_90", "lto_90"). They are copied.
 */
warpcc_rtc_status warpcc_rtc_image_new(const char *target,
                                       const void *bytes,
                                       size_t length,
                                       warpcc_rtc_image **image);

/**
 * The image's bytes, which live as long as it does. PTX has no NUL at its end.
 */
warpcc_rtc_status warpcc_rtc_image_bytes(const warpcc_rtc_image *image, const void **bytes, size_t *length);

/**
 * The name in the image of what the source calls `expression`, which must be one of those asked for. It lives as long as
 * the image.
 */
warpcc_rtc_status warpcc_rtc_image_lowered_name(const warpcc_rtc_image *image,
                                                const char *expression,
                                                const char **name);

/**
 * What the compiler said: warnings. It lives as long as the image; "" for null.
 */
const char *warpcc_rtc_image_log(const warpcc_rtc_image *image);

/**
 * What the image is: "sm_90". It lives as long as the image; "" for null.
 */
const char *warpcc_rtc_image_target(const warpcc_rtc_image *image);

/**
 * The image's key in the cache, the same on every machine; "" where it has none. It lives as long as the image.
 */
const char *warpcc_rtc_image_key(const warpcc_rtc_image *image);

/**
 * Where the image was found.
 */
warpcc_rtc_found warpcc_rtc_image_found(const warpcc_rtc_image *image);

/**
 * Frees it.
 */
void warpcc_rtc_image_free(warpcc_rtc_image *image);

/**
 * Makes an empty list.
 */
warpcc_rtc_status warpcc_rtc_pieces_new(warpcc_rtc_pieces **pieces);

/**
 * Adds an image under the name that messages and cuobjdump call it by. The image may be freed afterwards.
 */
warpcc_rtc_status warpcc_rtc_pieces_add_image(const warpcc_rtc_pieces *pieces,
                                              const char *name,
                                              const warpcc_rtc_image *image);

/**
 * Adds something else to be linked, by `warpcc_rtc_kind`. The bytes are copied.
 */
warpcc_rtc_status warpcc_rtc_pieces_add_bytes(const warpcc_rtc_pieces *pieces,
                                              int32_t kind,
                                              const char *name,
                                              const void *bytes,
                                              size_t length);

/**
 * Frees it.
 */
void warpcc_rtc_pieces_free(warpcc_rtc_pieces *pieces);

/**
 * Finds nvJitLink: at `path` (the library or its folder), or with null where docs/rtc.md says.
 */
warpcc_rtc_status warpcc_rtc_linker_open(const char *path, warpcc_rtc_linker **linker);

/**
 * Links pieces to one cubin for `target` ("sm_90"), with `count` options of nvJitLink's; no cache. Messages call the whole
 * `name`.
 */
warpcc_rtc_status warpcc_rtc_link(const warpcc_rtc_linker *linker,
                                  const char *name,
                                  const warpcc_rtc_pieces *pieces,
                                  const char *target,
                                  const char *const *options,
                                  size_t count,
                                  warpcc_rtc_image **image);

/**
 * Frees it.
 */
void warpcc_rtc_linker_free(warpcc_rtc_linker *linker);

/**
 * Finds nvFatbin: at `path` (the library or its folder), or with null where docs/rtc.md says.
 */
warpcc_rtc_status warpcc_rtc_fatbin_maker_open(const char *path, warpcc_rtc_fatbin_maker **maker);

/**
 * Makes a fat binary of the images in `pieces`, with `count` options of nvFatbin's ("-compress=false").
 */
warpcc_rtc_status warpcc_rtc_fatbin_make(const warpcc_rtc_fatbin_maker *maker,
                                         const warpcc_rtc_pieces *pieces,
                                         const char *const *options,
                                         size_t count,
                                         warpcc_rtc_fatbin **fatbin);

/**
 * The fat binary's bytes, which live as long as it does.
 */
warpcc_rtc_status warpcc_rtc_fatbin_bytes(const warpcc_rtc_fatbin *fatbin,
                                          const void **bytes,
                                          size_t *length);

/**
 * Frees it.
 */
void warpcc_rtc_fatbin_free(warpcc_rtc_fatbin *fatbin);

/**
 * Frees it; what it made stays.
 */
void warpcc_rtc_fatbin_maker_free(warpcc_rtc_fatbin_maker *maker);

/**
 * Settings that keep everything in memory, and nothing else.
 */
warpcc_rtc_status warpcc_rtc_settings_new(warpcc_rtc_settings **settings);

/**
 * Settings as the process's environment has them: docs/rtc.md has the table.
 */
warpcc_rtc_status warpcc_rtc_settings_from_environment(warpcc_rtc_settings **settings);

/**
 * A folder behind those given so far: what is found in one is kept in those before it. `max_size` is in bytes, 0 for no
 * limit; `readonly` is 0 or 1. The path is absolute.
 */
warpcc_rtc_status warpcc_rtc_settings_add_folder(const warpcc_rtc_settings *settings,
                                                 const char *folder,
                                                 uint64_t max_size,
                                                 int32_t readonly);

/**
 * The most to keep in memory, in bytes of images.
 */
warpcc_rtc_status warpcc_rtc_settings_memory(const warpcc_rtc_settings *settings, uint64_t bytes);

/**
 * As CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT have it, 0 or 1 each.
 */
warpcc_rtc_status warpcc_rtc_settings_ptx_jit(const warpcc_rtc_settings *settings,
                                              int32_t force,
                                              int32_t disable);

/**
 * Has caches look into the shared caches that `remote` names as `WARPCC_REMOTE` does ("redis://cache:6379"), behind the
 * folders, and upload what they make; "none" for none; null for those that `WARPCC_REMOTE` or the settings file names, as
 * docs/remote.md has them. Without this call, no cache reaches out. The first folder that may be written to takes what
 * comes; servers that fail are no errors but remarks of the cache. A library that was built without shared caches says
 * `WARPCC_RTC_STATUS_UNSUPPORTED`.
 */
warpcc_rtc_status warpcc_rtc_settings_remote(const warpcc_rtc_settings *settings,
                                             const char *remote);

/**
 * Frees them; caches opened with them stay as they are.
 */
void warpcc_rtc_settings_free(warpcc_rtc_settings *settings);

/**
 * Opens a cache. Each of the arguments may be null: the compiler is then the machine's, the settings are the
 * environment's, and kernels are compiled with nothing in common. Of `common` the texts before the source, headers, include
 * folders and options go into every kernel that is asked for by its texts (not by a request). All of them may be freed
 * afterwards.
 */
warpcc_rtc_status warpcc_rtc_cache_open(const warpcc_rtc_compiler *compiler,
                                        const warpcc_rtc_settings *settings,
                                        const warpcc_rtc_request *common,
                                        warpcc_rtc_cache **cache);

/**
 * What a request compiles to: from memory, from a folder, or compiled now. Included files are looked at again on every
 * hit.
 */
warpcc_rtc_status warpcc_rtc_cache_get(const warpcc_rtc_cache *cache,
                                       const warpcc_rtc_request *request,
                                       const warpcc_rtc_limits *limits,
                                       warpcc_rtc_image **image);

/**
 * The image of the kernel `name` (what C++ calls it: `scale<float>`) of a source, with `parameters` as text before it,
 * for `target`. `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
 */
warpcc_rtc_status warpcc_rtc_cache_get_image(const warpcc_rtc_cache *cache,
                                             const char *parameters,
                                             const char *name,
                                             const char *source,
                                             size_t length,
                                             const char *target,
                                             const warpcc_rtc_limits *limits,
                                             warpcc_rtc_image **image);

/**
 * What pieces link to, for `target` ("sm_90"), with `count` options of nvJitLink's: as `warpcc_rtc_link`, but kept.
 */
warpcc_rtc_status warpcc_rtc_cache_get_linked(const warpcc_rtc_cache *cache,
                                              const char *name,
                                              const warpcc_rtc_pieces *pieces,
                                              const char *target,
                                              const char *const *options,
                                              size_t count,
                                              const warpcc_rtc_limits *limits,
                                              warpcc_rtc_image **image);

/**
 * The cubin of a PTX text for `target` ("sm_90"): what a driver's JIT does, but kept, and without a GPU. `length` is in
 * bytes, with or without a NUL at the end.
 */
warpcc_rtc_status warpcc_rtc_cache_load_ptx(const warpcc_rtc_cache *cache,
                                            const char *name,
                                            const void *ptx,
                                            size_t length,
                                            const char *target,
                                            const warpcc_rtc_limits *limits,
                                            warpcc_rtc_image **image);

/**
 * What a driver would run of a fat binary, a cubin or a PTX text on a GPU of compute capability `capability` (90), by its
 * own rules; PTX is compiled through the cache. `driver` is the driver's version as `cuDriverGetVersion` has it (13000), or
 * 0 for one that knows every PTX.
 */
warpcc_rtc_status warpcc_rtc_cache_get_fatbin(const warpcc_rtc_cache *cache,
                                              const char *name,
                                              const void *fatbin,
                                              size_t length,
                                              uint32_t capability,
                                              uint32_t driver,
                                              const warpcc_rtc_limits *limits,
                                              warpcc_rtc_image **image);

/**
 * MXNet's call: the kernel `name` of a source, with `parameters` as text before it, ready to launch on `device`. Compiled
 * and loaded when it is first asked for; afterwards it costs a look into memory. `length` of the source is in bytes, or
 * `WARPCC_RTC_TO_NUL`.
 */
warpcc_rtc_status warpcc_rtc_cache_get_function(const warpcc_rtc_cache *cache,
                                                const char *parameters,
                                                const char *name,
                                                const char *source,
                                                size_t length,
                                                const warpcc_rtc_device *device,
                                                const warpcc_rtc_limits *limits,
                                                warpcc_rtc_function **function);

/**
 * Forgets every loaded function; those that the program holds stay loaded. To be called before a context is destroyed.
 */
warpcc_rtc_status warpcc_rtc_cache_unload_functions(const warpcc_rtc_cache *cache);

/**
 * Copies the best target for a GPU of compute capability `capability` (90) into `buffer`, by the settings. 32 bytes are
 * enough.
 */
warpcc_rtc_status warpcc_rtc_cache_target_for(const warpcc_rtc_cache *cache,
                                              uint32_t capability,
                                              char *buffer,
                                              size_t size,
                                              size_t *length);

/**
 * How often images were found, and where. A function from memory is not counted.
 */
warpcc_rtc_status warpcc_rtc_cache_counts(const warpcc_rtc_cache *cache, warpcc_rtc_counts *counts);

/**
 * Copies what went wrong so far without being an error into `buffer` of `size` bytes, one remark a line, cut to what
 * there is room for, with a NUL; `length` is how long the whole is, without the NUL. `buffer` may be null if `size` is 0,
 * and `length` may be null.
 */
warpcc_rtc_status warpcc_rtc_cache_remarks(const warpcc_rtc_cache *cache,
                                           char *buffer,
                                           size_t size,
                                           size_t *length);

/**
 * Waits until new results are uploaded to the shared caches, at most `timeout_ms` milliseconds, and tries servers again that
 * failed a while ago. Sets `waiting`, which may be null, to 0, or to 1 if something still waits. The next process that uses
 * the folder, or `warpcc remote upload`, then uploads it, and the remarks say why it waits. Uploads run in the background
 * anyway: call this at the end of a program, or in a CI job whose folder is deleted.
 */
warpcc_rtc_status warpcc_rtc_cache_flush(const warpcc_rtc_cache *cache,
                                         uint64_t timeout_ms,
                                         int32_t *waiting);

/**
 * Frees it. Images, functions and kernels that came of it stay.
 */
void warpcc_rtc_cache_free(warpcc_rtc_cache *cache);

/**
 * Reads and hashes a kernel's texts once, for `warpcc_rtc_kernel_function`. Nothing is compiled yet; the cache stays as
 * long as the kernel does.
 */
warpcc_rtc_status warpcc_rtc_kernel_new(const warpcc_rtc_cache *cache,
                                        const char *parameters,
                                        const char *name,
                                        const char *source,
                                        size_t length,
                                        warpcc_rtc_kernel **kernel);

/**
 * As `warpcc_rtc_cache_get_function`; a repeat costs well under a microsecond, however long the texts are.
 */
warpcc_rtc_status warpcc_rtc_kernel_function(const warpcc_rtc_kernel *kernel,
                                             const warpcc_rtc_device *device,
                                             const warpcc_rtc_limits *limits,
                                             warpcc_rtc_function **function);

/**
 * Frees it; its functions stay.
 */
void warpcc_rtc_kernel_free(warpcc_rtc_kernel *kernel);

/**
 * The GPU number `ordinal`, with its primary context, which the CUDA runtime, PyTorch and CuPy use too.
 */
warpcc_rtc_status warpcc_rtc_device_open(uint32_t ordinal, warpcc_rtc_device **device);

/**
 * The GPU of the `CUcontext` that is current on this thread, with that context. It stays the caller's: it must live as
 * long as the device and every function loaded with it, and before it is destroyed, `warpcc_rtc_cache_unload_functions` is
 * to be called for each cache that was given the device.
 */
warpcc_rtc_status warpcc_rtc_device_of_current_context(warpcc_rtc_device **device);

/**
 * The GPU's compute capability, ten times major plus minor: 90.
 */
warpcc_rtc_status warpcc_rtc_device_capability(const warpcc_rtc_device *device, uint32_t *capability);

/**
 * Loads an image and gives the function with this name in it (`warpcc_rtc_image_lowered_name`).
 */
warpcc_rtc_status warpcc_rtc_device_load(const warpcc_rtc_device *device,
                                         const warpcc_rtc_image *image,
                                         const char *lowered,
                                         warpcc_rtc_function **function);

/**
 * Frees it. A primary context is let go of; functions loaded with it stay.
 */
void warpcc_rtc_device_free(warpcc_rtc_device *device);

/**
 * The driver's `CUfunction`, which lives as long as the function; null for null.
 */
CUfunc_st *warpcc_rtc_function_cuda(const warpcc_rtc_function *function);

/**
 * The function's name in its image, which lives as long as the function; "" for null.
 */
const char *warpcc_rtc_function_name(const warpcc_rtc_function *function);

/**
 * Starts a kernel on `stream` (null: the default stream) and does not wait for it. `arguments` has a pointer to each of the
 * kernel's arguments, `count` of them, as `cuLaunchKernel` wants them; drivers from 12.4 on tell how many there must be, and
 * another number is refused. The function's context becomes the thread's.
 */
warpcc_rtc_status warpcc_rtc_function_launch(const warpcc_rtc_function *function,
                                             const warpcc_rtc_shape *shape,
                                             CUstream_st *stream,
                                             void *const *arguments,
                                             size_t count);

/**
 * Frees it. The module stays loaded while a cache or another function of it holds it.
 */
void warpcc_rtc_function_free(warpcc_rtc_function *function);

/**
 * Plans a function of one array ("relu"; docs/kernels.md has them all). `write` is of `warpcc_rtc_write`. No GPU is needed;
 * the arrays themselves are not looked at.
 */
warpcc_rtc_status warpcc_rtc_plan_unary(const char *function,
                                        const warpcc_rtc_tensor *x,
                                        const warpcc_rtc_tensor *output,
                                        int32_t write,
                                        warpcc_rtc_plan **plan);

/**
 * Plans a function of two arrays, or of an array and a number, broadcast to the output ("add", "power").
 */
warpcc_rtc_status warpcc_rtc_plan_binary(const char *function,
                                         const warpcc_rtc_value *x,
                                         const warpcc_rtc_value *y,
                                         const warpcc_rtc_tensor *output,
                                         int32_t write,
                                         warpcc_rtc_plan **plan);

/**
 * Plans an expression over arrays and numbers as one kernel: "relu(a * x + b)", with `count` values by name.
 */
warpcc_rtc_status warpcc_rtc_plan_fused(const char *expression,
                                        const warpcc_rtc_value *values,
                                        size_t count,
                                        const warpcc_rtc_tensor *output,
                                        int32_t write,
                                        warpcc_rtc_plan **plan);

/**
 * Plans a reduction ("sum", "max", "norm2") over `count` axes of `x` (negative ones count from the last; null: over all).
 * The output has the axes that are left, or all with the reduced ones of size 1.
 */
warpcc_rtc_status warpcc_rtc_plan_reduce(const char *reduction,
                                         const warpcc_rtc_tensor *x,
                                         const int64_t *axes,
                                         size_t count,
                                         const warpcc_rtc_tensor *output,
                                         int32_t write,
                                         warpcc_rtc_plan **plan);

/**
 * How many kernels a plan starts (0 where there is nothing to do), and the bytes of device memory that they share
 * meanwhile.
 */
warpcc_rtc_status warpcc_rtc_plan_size(const warpcc_rtc_plan *plan,
                                       size_t *kernels,
                                       uint64_t *workspace);

/**
 * Compiles a plan's kernels for `target` ("sm_90") into a cache's folders, where a launcher of the same settings finds
 * them. No GPU is needed.
 */
warpcc_rtc_status warpcc_rtc_plan_warm(const warpcc_rtc_plan *plan,
                                       const warpcc_rtc_cache *cache,
                                       const char *target,
                                       const warpcc_rtc_limits *limits);

/**
 * Frees it; what was started goes on.
 */
void warpcc_rtc_plan_free(warpcc_rtc_plan *plan);

/**
 * Makes a launcher for a GPU. It compiles with the cache's compiler, keeps by its settings and shares with its shared caches, with
 * counts of its own.
 */
warpcc_rtc_status warpcc_rtc_launcher_new(const warpcc_rtc_cache *cache,
                                          const warpcc_rtc_device *device,
                                          warpcc_rtc_launcher **launcher);

/**
 * Starts a plan's kernels on `stream` (null: the default stream) and does not wait for them. The driver is asked first
 * whether it knows the arrays' addresses; that they are as large as was said, and stay until the stream is done, is for the
 * caller to see to. The GPU's context becomes the thread's.
 */
warpcc_rtc_status warpcc_rtc_launcher_run(const warpcc_rtc_launcher *launcher,
                                          const warpcc_rtc_plan *plan,
                                          CUstream_st *stream,
                                          const warpcc_rtc_limits *limits);

/**
 * How often images were found, and where.
 */
warpcc_rtc_status warpcc_rtc_launcher_counts(const warpcc_rtc_launcher *launcher, warpcc_rtc_counts *counts);

/**
 * Copies the launcher's remarks, as `warpcc_rtc_cache_remarks` does a cache's.
 */
warpcc_rtc_status warpcc_rtc_launcher_remarks(const warpcc_rtc_launcher *launcher,
                                              char *buffer,
                                              size_t size,
                                              size_t *length);

/**
 * Frees it; what was started goes on.
 */
void warpcc_rtc_launcher_free(warpcc_rtc_launcher *launcher);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WARPCC_RTC_H */
