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
 * The number of this interface. It changes if a program that was compiled with an older header would no longer run
 * correctly. New functions or numbers do not change it.
 */
#define WARPCC_RTC_ABI 1

/**
 * The version of the header; `warpcc_rtc_version` returns the library's.
 */
#define WARPCC_RTC_VERSION_MAJOR 0

/**
 * The second part of the version.
 */
#define WARPCC_RTC_VERSION_MINOR 1

/**
 * The third part of the version.
 */
#define WARPCC_RTC_VERSION_PATCH 0



/**
 * The status that a function returns. The numbers do not change; later versions may add more.
 */
enum warpcc_rtc_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The function succeeded.
   */
  WARPCC_RTC_STATUS_OK = 0,
  /**
   * A library of NVIDIA's was not found, or does not load; the text lists the places that were tried.
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
   * The source does not compile; the text has the place, the log, the options and the file with the whole source.
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
   * A call of a library of NVIDIA's failed for a reason other than the text.
   */
  WARPCC_RTC_STATUS_CALL = 8,
  /**
   * The driver returned an error: `warpcc_rtc_error_driver` has its number.
   */
  WARPCC_RTC_STATUS_DRIVER = 9,
  /**
   * A file or folder could not be used.
   */
  WARPCC_RTC_STATUS_FILE = 10,
  /**
   * An image cannot be put into a fat binary.
   */
  WARPCC_RTC_STATUS_FATBIN = 11,
  /**
   * A bug in this library, which stays usable.
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
 * The place where an image was found.
 */
enum warpcc_rtc_found
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * This process's memory.
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
   * It was not found, so it was made.
   */
  WARPCC_RTC_FOUND_MADE = 3,
  /**
   * The caller's own data.
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
 * The kind of a piece that is not an image of this library.
 */
enum warpcc_rtc_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A fat binary; the linker takes the fitting image.
   */
  WARPCC_RTC_KIND_FATBIN = 4,
  /**
   * A host object with a fat binary inside.
   */
  WARPCC_RTC_KIND_OBJECT = 5,
  /**
   * A library of objects with fat binaries.
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
 * The type of an element. docs/kernels.md lists the type in which each is computed.
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
   * 8 bits, signed.
   */
  WARPCC_RTC_DTYPE_INT8 = 1,
  /**
   * 8 bits, unsigned.
   */
  WARPCC_RTC_DTYPE_UINT8 = 2,
  /**
   * 16 bits, signed.
   */
  WARPCC_RTC_DTYPE_INT16 = 3,
  /**
   * 16 bits, unsigned.
   */
  WARPCC_RTC_DTYPE_UINT16 = 4,
  /**
   * 32 bits, signed.
   */
  WARPCC_RTC_DTYPE_INT32 = 5,
  /**
   * 32 bits, unsigned.
   */
  WARPCC_RTC_DTYPE_UINT32 = 6,
  /**
   * 64 bits, signed.
   */
  WARPCC_RTC_DTYPE_INT64 = 7,
  /**
   * 64 bits, unsigned.
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
   * OCP 8-bit with 4 bits of exponent.
   */
  WARPCC_RTC_DTYPE_FLOAT8_E4M3 = 11,
  /**
   * OCP 8-bit with 5 bits of exponent.
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
 * How a result is written.
 */
enum warpcc_rtc_write
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It replaces the content of the output.
   */
  WARPCC_RTC_WRITE_REPLACE = 0,
  /**
   * It is added to the content of the output.
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
 * The kind of a value.
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
   * A floating-point number.
   */
  WARPCC_RTC_VALUE_KIND_FLOAT = 1,
  /**
   * An integer.
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
 * Headers and LTO-IR as one block of bytes, as `warpcc rtc embed` and CMake's `warpcc_rtc_embed` make it.
 */
typedef struct warpcc_rtc_bundle warpcc_rtc_bundle;

/**
 * The driver's function: `CUfunction` is a pointer to it.
 */
typedef struct CUfunc_st CUfunc_st;

/**
 * The driver's stream: `CUstream` is a pointer to it, and so is the runtime's `cudaStream_t`.
 */
typedef struct CUstream_st CUstream_st;

/**
 * A cache: kernels as text in, images and functions out, each compiled once.
 */
typedef struct warpcc_rtc_cache warpcc_rtc_cache;

/**
 * The settings of a cache.
 */
typedef struct warpcc_rtc_settings warpcc_rtc_settings;

/**
 * A cancellation, which any thread may trigger.
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
 * The limits of a call. Null in its place means no limit.
 */
typedef struct {
  /**
   * The time from the start of the call in milliseconds; 0: no limit.
   */
  uint64_t timeout_ms;
  /**
   * The cancellation of the call; null: none. NVRTC before 12.8 cannot be stopped: it is only checked before the start.
   */
  const warpcc_rtc_cancellation *cancel;
} warpcc_rtc_limits;

/**
 * A request that a cache has answered. Everything is valid during the call only. A later version may add members at the end.
 */
typedef struct {
  /**
   * The name of the program, the link or the PTX text.
   */
  const char *name;
  /**
   * The key in hexadecimal; empty if it is not known.
   */
  const char *key;
  /**
   * 0, or why there is no image.
   */
  warpcc_rtc_status status;
  /**
   * The place where the image was found; `WARPCC_RTC_FOUND_MADE` for a miss. Undefined with another status than 0.
   */
  warpcc_rtc_found found;
  /**
   * The error's text; null with status 0.
   */
  const char *error;
  /**
   * When the request began, in seconds since 1970.
   */
  double started;
  /**
   * How long it took, in seconds, waiting for other threads and processes included.
   */
  double seconds;
} warpcc_rtc_event;

/**
 * Called after each request, by the thread that asked. It may use the cache, and must not unwind.
 */
typedef void (*warpcc_rtc_observer)(void *user, const warpcc_rtc_event *event);

/**
 * Called once with `user`, when no settings and no cache need it any more.
 */
typedef void (*warpcc_rtc_release)(void *user);

/**
 * How often images were found, and where.
 */
typedef struct {
  /**
   * Found in memory.
   */
  uint64_t memory;
  /**
   * Found in a folder.
   */
  uint64_t disk;
  /**
   * Found in a shared cache.
   */
  uint64_t shared;
  /**
   * Not found, so made.
   */
  uint64_t made;
} warpcc_rtc_counts;

/**
 * Called once for each image that is done, by the thread that asked: how many are done, how many were asked for, the name of
 * this one (valid during the call) and its status. 0 cancels the rest, any other number goes on. It must not unwind.
 */
typedef int32_t (*warpcc_rtc_progress)(void *user,
                                       size_t done,
                                       size_t total,
                                       const char *name,
                                       warpcc_rtc_status status);

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
   * The device address of the first element.
   */
  uint64_t address;
  /**
   * Its sizes, outermost first.
   */
  const uint64_t *shape;
  /**
   * Strides between neighbours in each dimension, in elements; null: contiguous rows.
   */
  const int64_t *strides;
  /**
   * The number of sizes and strides; 0 for a single element.
   */
  uint32_t dimensions;
  /**
   * `warpcc_rtc_dtype`
   */
  int32_t dtype;
} warpcc_rtc_tensor;

/**
 * The value of a name in an expression. A number is an argument of the kernel: another value needs no other kernel.
 */
typedef struct {
  /**
   * The name in the expression; `warpcc_rtc_plan_binary` ignores it.
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
 * The text of this thread's last error, UTF-8 with a NUL at its end; empty if there was none. It is valid until the next
 * error on this thread. Functions that succeed do not change it.
 */
const char *warpcc_rtc_error_text(void);

/**
 * The length of the last error's text in bytes, without the NUL.
 */
size_t warpcc_rtc_error_length(void);

/**
 * The driver's number (`CUresult`) of this thread's last error; 0 if it was not the driver's.
 */
uint32_t warpcc_rtc_error_driver(void);

/**
 * The name of a status: "invalid".
 */
const char *warpcc_rtc_status_name(int32_t status);

/**
 * Makes a cancellation that is not triggered.
 */
warpcc_rtc_status warpcc_rtc_cancel_new(warpcc_rtc_cancellation **cancel);

/**
 * Cancels all calls that use it.
 */
warpcc_rtc_status warpcc_rtc_cancel(const warpcc_rtc_cancellation *cancel);

/**
 * Frees the cancellation; calls that use it go on.
 */
void warpcc_rtc_cancel_free(warpcc_rtc_cancellation *cancel);

/**
 * Makes a request from the program's name in messages, its source, and its target ("sm_90" for machine code, "compute_90"
 * for PTX, "lto_90" for LTO-IR). `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
 *
 * `warpcc_rtc_cache_open` uses only the texts, folders and options of a request. For it, name and source may be "" and the
 * target null.
 */
warpcc_rtc_status warpcc_rtc_request_new(const char *name,
                                         const char *source,
                                         size_t length,
                                         const char *target,
                                         warpcc_rtc_request **request);

/**
 * Adds a text of `length` bytes (or `WARPCC_RTC_TO_NUL`) before the source, after earlier ones. Messages call it `name` and
 * count its lines separately.
 */
warpcc_rtc_status warpcc_rtc_request_add_preamble(const warpcc_rtc_request *request,
                                                  const char *name,
                                                  const char *text,
                                                  size_t length);

/**
 * Adds a header of `length` bytes (or `WARPCC_RTC_TO_NUL`), under the exact name in the `#include`.
 */
warpcc_rtc_status warpcc_rtc_request_add_header(const warpcc_rtc_request *request,
                                                const char *name,
                                                const char *text,
                                                size_t length);

/**
 * Adds an include folder, after earlier ones. Without one, NVRTC opens no file at all.
 */
warpcc_rtc_status warpcc_rtc_request_add_include_folder(const warpcc_rtc_request *request,
                                                        const char *folder);

/**
 * Adds a name in C++ (`scale<float>`) whose name in the image is needed.
 */
warpcc_rtc_status warpcc_rtc_request_add_name(const warpcc_rtc_request *request, const char *expression);

/**
 * Adds an option for NVRTC, in one piece: "--std=c++20", "-DN=4".
 */
warpcc_rtc_status warpcc_rtc_request_add_option(const warpcc_rtc_request *request, const char *option);

/**
 * Sets the file that the source is from. Errors name it in place of the request's name, and so does debug information (`-G`,
 * `-lineinfo`). It decides nothing else.
 */
warpcc_rtc_status warpcc_rtc_request_file(const warpcc_rtc_request *request,
                                          const char *file);

/**
 * Sets whether NVRTC may keep the headers that it read for the next program of this process (12.8): 0 or 1.
 */
warpcc_rtc_status warpcc_rtc_request_precompile_headers(const warpcc_rtc_request *request,
                                                        int32_t precompile);

/**
 * Frees the request.
 */
void warpcc_rtc_request_free(warpcc_rtc_request *request);

/**
 * Finds NVRTC at `path` (the library or its folder), or with null in the places that docs/rtc.md lists.
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
 * `warpcc_rtc_cache_remarks` does: "sm_90", or PTX for a GPU newer than NVRTC. 32 bytes are enough.
 */
warpcc_rtc_status warpcc_rtc_compiler_target_for(const warpcc_rtc_compiler *compiler,
                                                 uint32_t capability,
                                                 char *buffer,
                                                 size_t size,
                                                 size_t *length);

/**
 * Writes the headers that NVRTC carries (13.3 and newer) into `folder`, unless they exist, and adds their include folders
 * to `request`.
 */
warpcc_rtc_status warpcc_rtc_compiler_install_headers(const warpcc_rtc_compiler *compiler,
                                                      const char *folder,
                                                      const warpcc_rtc_request *request);

/**
 * Compiles a request without a cache.
 */
warpcc_rtc_status warpcc_rtc_compile(const warpcc_rtc_compiler *compiler,
                                     const warpcc_rtc_request *request,
                                     const warpcc_rtc_limits *limits,
                                     warpcc_rtc_image **image);

/**
 * Frees the compiler; its images stay valid.
 */
void warpcc_rtc_compiler_free(warpcc_rtc_compiler *compiler);

/**
 * Makes an image from the program's own bytes, which are copied. `target` is their kind and architecture ("sm_90",
 * "compute_90", "lto_90").
 */
warpcc_rtc_status warpcc_rtc_image_new(const char *target,
                                       const void *bytes,
                                       size_t length,
                                       warpcc_rtc_image **image);

/**
 * The image's bytes, which are valid as long as the image. PTX has no NUL at its end.
 */
warpcc_rtc_status warpcc_rtc_image_bytes(const warpcc_rtc_image *image, const void **bytes, size_t *length);

/**
 * The name in the image for `expression`, which is a name in the source and must be one of those requested. It is valid as
 * long as the image.
 */
warpcc_rtc_status warpcc_rtc_image_lowered_name(const warpcc_rtc_image *image,
                                                const char *expression,
                                                const char **name);

/**
 * The compiler's warnings. They are valid as long as the image; "" for null.
 */
const char *warpcc_rtc_image_log(const warpcc_rtc_image *image);

/**
 * The image's target: "sm_90". It is valid as long as the image; "" for null.
 */
const char *warpcc_rtc_image_target(const warpcc_rtc_image *image);

/**
 * The image's key in the cache, the same on every machine; "" if it has none. It is valid as long as the image.
 */
const char *warpcc_rtc_image_key(const warpcc_rtc_image *image);

/**
 * The place where the image was found.
 */
warpcc_rtc_found warpcc_rtc_image_found(const warpcc_rtc_image *image);

/**
 * Frees the image.
 */
void warpcc_rtc_image_free(warpcc_rtc_image *image);

/**
 * Opens a bundle. Its list is read and verified, and the bytes are copied. Nothing is decompressed until something is compiled.
 */
warpcc_rtc_status warpcc_rtc_bundle_open(const void *bytes,
                                         size_t length,
                                         warpcc_rtc_bundle **bundle);

/**
 * Stores how many headers and how many pieces of LTO-IR a bundle has. Each pointer may be null.
 */
warpcc_rtc_status warpcc_rtc_bundle_count(const warpcc_rtc_bundle *bundle,
                                          size_t *headers,
                                          size_t *fragments);

/**
 * Copies a bundle's digest, 64 hexadecimal digits, into `buffer`. It is the same for the same names and contents.
 */
warpcc_rtc_status warpcc_rtc_bundle_digest(const warpcc_rtc_bundle *bundle,
                                           char *buffer,
                                           size_t size,
                                           size_t *length);

/**
 * Frees the bundle. Requests that it was added to keep what they need.
 */
void warpcc_rtc_bundle_free(warpcc_rtc_bundle *bundle);

/**
 * Adds a bundle: its headers can be included under their names, and a cache links machine code with its LTO-IR. The key has
 * the bundle's digest.
 */
warpcc_rtc_status warpcc_rtc_request_add_bundle(const warpcc_rtc_request *request,
                                                const warpcc_rtc_bundle *bundle);

/**
 * Makes an empty list.
 */
warpcc_rtc_status warpcc_rtc_pieces_new(warpcc_rtc_pieces **pieces);

/**
 * Adds an image under a name for messages and cuobjdump. The image may be freed afterwards.
 */
warpcc_rtc_status warpcc_rtc_pieces_add_image(const warpcc_rtc_pieces *pieces,
                                              const char *name,
                                              const warpcc_rtc_image *image);

/**
 * Adds another piece to be linked, of a `warpcc_rtc_kind`. The bytes are copied.
 */
warpcc_rtc_status warpcc_rtc_pieces_add_bytes(const warpcc_rtc_pieces *pieces,
                                              int32_t kind,
                                              const char *name,
                                              const void *bytes,
                                              size_t length);

/**
 * Frees the list.
 */
void warpcc_rtc_pieces_free(warpcc_rtc_pieces *pieces);

/**
 * Finds nvJitLink at `path` (the library or its folder), or with null in the places that docs/rtc.md lists.
 */
warpcc_rtc_status warpcc_rtc_linker_open(const char *path, warpcc_rtc_linker **linker);

/**
 * Links pieces to one cubin for `target` ("sm_90"), with `count` options of nvJitLink, without a cache. Messages call the
 * result `name`.
 */
warpcc_rtc_status warpcc_rtc_link(const warpcc_rtc_linker *linker,
                                  const char *name,
                                  const warpcc_rtc_pieces *pieces,
                                  const char *target,
                                  const char *const *options,
                                  size_t count,
                                  warpcc_rtc_image **image);

/**
 * Frees the linker.
 */
void warpcc_rtc_linker_free(warpcc_rtc_linker *linker);

/**
 * Finds nvFatbin at `path` (the library or its folder), or with null in the places that docs/rtc.md lists.
 */
warpcc_rtc_status warpcc_rtc_fatbin_maker_open(const char *path, warpcc_rtc_fatbin_maker **maker);

/**
 * Makes a fat binary of the images in `pieces`, with `count` options of nvFatbin ("-compress=false").
 */
warpcc_rtc_status warpcc_rtc_fatbin_make(const warpcc_rtc_fatbin_maker *maker,
                                         const warpcc_rtc_pieces *pieces,
                                         const char *const *options,
                                         size_t count,
                                         warpcc_rtc_fatbin **fatbin);

/**
 * The fat binary's bytes, which are valid as long as it is.
 */
warpcc_rtc_status warpcc_rtc_fatbin_bytes(const warpcc_rtc_fatbin *fatbin,
                                          const void **bytes,
                                          size_t *length);

/**
 * Frees the fat binary.
 */
void warpcc_rtc_fatbin_free(warpcc_rtc_fatbin *fatbin);

/**
 * Frees the maker; its fat binaries stay valid.
 */
void warpcc_rtc_fatbin_maker_free(warpcc_rtc_fatbin_maker *maker);

/**
 * Makes settings that keep images in memory only.
 */
warpcc_rtc_status warpcc_rtc_settings_new(warpcc_rtc_settings **settings);

/**
 * Makes settings from the process's environment: docs/rtc.md has the table.
 */
warpcc_rtc_status warpcc_rtc_settings_from_environment(warpcc_rtc_settings **settings);

/**
 * Adds a folder after earlier ones: an image found in one folder is copied to the folders before it. `max_size` is in
 * bytes, 0 for no limit; `readonly` is 0 or 1. The path is absolute.
 */
warpcc_rtc_status warpcc_rtc_settings_add_folder(const warpcc_rtc_settings *settings,
                                                 const char *folder,
                                                 uint64_t max_size,
                                                 int32_t readonly);

/**
 * Adds a pack of ready-made images, which is only read: a file of `warpcc rtc warm --pack`, or a folder like those of a cache.
 * Packs are looked into after the folders. One that is damaged is no error, but a remark of the cache.
 */
warpcc_rtc_status warpcc_rtc_settings_add_pack(const warpcc_rtc_settings *settings,
                                               const char *pack);

/**
 * Sets the size of the cache in memory, in bytes of images.
 */
warpcc_rtc_status warpcc_rtc_settings_memory(const warpcc_rtc_settings *settings, uint64_t bytes);

/**
 * Sets the values of CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT, 0 or 1 each.
 */
warpcc_rtc_status warpcc_rtc_settings_ptx_jit(const warpcc_rtc_settings *settings,
                                              int32_t force,
                                              int32_t disable);

/**
 * Sets shared caches, which are used behind the folders and get new results. `remote` names them like `WARPCC_REMOTE`
 * ("redis://cache:6379"); "none" means none; null means those of `WARPCC_REMOTE` or of the settings file, as docs/remote.md
 * describes. Without this call, a cache uses no network. Fetched results are stored in the first folder that may be written
 * to. A server that fails is no error, but a remark of the cache. A library that was built without shared caches returns
 * `WARPCC_RTC_STATUS_UNSUPPORTED`.
 */
warpcc_rtc_status warpcc_rtc_settings_remote(const warpcc_rtc_settings *settings,
                                             const char *remote);

/**
 * Frees the settings; caches that were opened with them do not change.
 */
void warpcc_rtc_settings_free(warpcc_rtc_settings *settings);

/**
 * Calls `observer` after each request of the caches that are opened with these settings, and of their launchers: after each
 * hit, miss and error. Any thread may call it at any time. Requests for functions that are already loaded are not told.
 * `user` and `release` may be null. `release` is called once, also if this call fails; after that `observer` is not called.
 */
warpcc_rtc_status warpcc_rtc_settings_observe(const warpcc_rtc_settings *settings,
                                              warpcc_rtc_observer observer,
                                              void *user,
                                              warpcc_rtc_release release);

/**
 * Opens a cache. Each argument may be null: then the machine's compiler is used, or the settings of the environment, or
 * kernels have no common part. The texts before the source, headers, include folders and options of `common` are part of
 * every kernel that is requested by its texts (not by a request). All arguments may be freed afterwards.
 */
warpcc_rtc_status warpcc_rtc_cache_open(const warpcc_rtc_compiler *compiler,
                                        const warpcc_rtc_settings *settings,
                                        const warpcc_rtc_request *common,
                                        warpcc_rtc_cache **cache);

/**
 * The image of a request: from memory, from a folder, or compiled now. Every hit checks the included files again.
 */
warpcc_rtc_status warpcc_rtc_cache_get(const warpcc_rtc_cache *cache,
                                       const warpcc_rtc_request *request,
                                       const warpcc_rtc_limits *limits,
                                       warpcc_rtc_image **image);

/**
 * The image of the kernel `name` (as in C++: `scale<float>`) of a source, with `parameters` as text before it, for
 * `target`. `length` of the source is in bytes, or `WARPCC_RTC_TO_NUL`.
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
 * Links pieces for `target` ("sm_90"), with `count` options of nvJitLink: like `warpcc_rtc_link`, but through the cache.
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
 * The cubin of a PTX text for `target` ("sm_90"): like a driver's JIT, but through the cache, and without a GPU. `length`
 * is in bytes, with or without a NUL at the end.
 */
warpcc_rtc_status warpcc_rtc_cache_load_ptx(const warpcc_rtc_cache *cache,
                                            const char *name,
                                            const void *ptx,
                                            size_t length,
                                            const char *target,
                                            const warpcc_rtc_limits *limits,
                                            warpcc_rtc_image **image);

/**
 * The image that a driver would run from a fat binary, a cubin or a PTX text on a GPU of compute capability `capability`
 * (90), by the driver's rules. PTX is compiled through the cache. `driver` is the driver's version as `cuDriverGetVersion`
 * returns it (13000), or 0 for a driver that knows every PTX.
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
 * The same call as MXNet's: the kernel `name` of a source, with `parameters` as text before it, ready to launch on
 * `device`. The first request compiles and loads it; later ones only look it up in memory. `length` of the source is in
 * bytes, or `WARPCC_RTC_TO_NUL`.
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
 * Removes every loaded function from the cache; those that the program holds stay loaded. Call it before you destroy a
 * context.
 */
warpcc_rtc_status warpcc_rtc_cache_unload_functions(const warpcc_rtc_cache *cache);

/**
 * Copies the best target for a GPU of compute capability `capability` (90), by the settings, into `buffer`. 32 bytes are
 * enough.
 */
warpcc_rtc_status warpcc_rtc_cache_target_for(const warpcc_rtc_cache *cache,
                                              uint32_t capability,
                                              char *buffer,
                                              size_t size,
                                              size_t *length);

/**
 * How often images were found, and where. Functions from memory are not counted.
 */
warpcc_rtc_status warpcc_rtc_cache_counts(const warpcc_rtc_cache *cache, warpcc_rtc_counts *counts);

/**
 * Copies the remarks (problems so far that are not errors) into `buffer` of `size` bytes, one per line, cut to fit, with a
 * NUL. `length` is set to the whole length without the NUL. `buffer` may be null if `size` is 0, and `length` may be null.
 */
warpcc_rtc_status warpcc_rtc_cache_remarks(const warpcc_rtc_cache *cache,
                                           char *buffer,
                                           size_t size,
                                           size_t *length);

/**
 * Waits at most `timeout_ms` milliseconds until new results are uploaded to the shared caches, and tries servers again that
 * failed a while ago. Sets `waiting`, which may be null, to 0, or to 1 if some results are not uploaded yet. The next
 * process that uses the folder, or `warpcc remote upload`, then uploads them, and a remark says why they wait. Uploads run
 * in the background anyway: call this at the end of a program, or in a CI job whose folder is deleted.
 */
warpcc_rtc_status warpcc_rtc_cache_flush(const warpcc_rtc_cache *cache,
                                         uint64_t timeout_ms,
                                         int32_t *waiting);

/**
 * Frees the cache. Its images, functions and kernels stay valid.
 */
void warpcc_rtc_cache_free(warpcc_rtc_cache *cache);

/**
 * The images of `count` requests, in their order: each as `warpcc_rtc_cache_get` gives it. They are looked up and compiled by
 * `threads` threads, 0 for as many as there are processors; no more compile than this machine has room for in all processes
 * of the user together. Where several processes ask for the same requests, each is compiled once. `images` has room for
 * `count` handles; those of requests that failed are null, and the first one's error is returned when all are done.
 * `progress` and `user` may be null. Changes of a request wait until this call ends.
 */
warpcc_rtc_status warpcc_rtc_cache_get_many(const warpcc_rtc_cache *cache,
                                            const warpcc_rtc_request *const *requests,
                                            size_t count,
                                            size_t threads,
                                            const warpcc_rtc_limits *limits,
                                            warpcc_rtc_progress progress,
                                            void *user,
                                            warpcc_rtc_image **images);

/**
 * Reads and hashes a kernel's texts once, for `warpcc_rtc_kernel_function`. This compiles nothing. The cache lives as long
 * as the kernel.
 */
warpcc_rtc_status warpcc_rtc_kernel_new(const warpcc_rtc_cache *cache,
                                        const char *parameters,
                                        const char *name,
                                        const char *source,
                                        size_t length,
                                        warpcc_rtc_kernel **kernel);

/**
 * Sets the file that the kernel's source is from, once, for errors: they name it in place of the kernel's name. It decides
 * nothing else.
 */
warpcc_rtc_status warpcc_rtc_kernel_file(const warpcc_rtc_kernel *kernel,
                                         const char *file);

/**
 * Like `warpcc_rtc_cache_get_function`; a repeated call takes well under a microsecond, however long the texts are.
 */
warpcc_rtc_status warpcc_rtc_kernel_function(const warpcc_rtc_kernel *kernel,
                                             const warpcc_rtc_device *device,
                                             const warpcc_rtc_limits *limits,
                                             warpcc_rtc_function **function);

/**
 * Frees the kernel; its functions stay valid.
 */
void warpcc_rtc_kernel_free(warpcc_rtc_kernel *kernel);

/**
 * Opens the GPU number `ordinal` with its primary context, which the CUDA runtime, PyTorch and CuPy use too.
 */
warpcc_rtc_status warpcc_rtc_device_open(uint32_t ordinal, warpcc_rtc_device **device);

/**
 * Opens the GPU of this thread's current `CUcontext`, with that context. The caller keeps the context: it must live as long
 * as the device and every function loaded with it. Before it is destroyed, `warpcc_rtc_cache_unload_functions` must be
 * called for each cache that used the device.
 */
warpcc_rtc_status warpcc_rtc_device_of_current_context(warpcc_rtc_device **device);

/**
 * The GPU's compute capability, ten times major plus minor: 90.
 */
warpcc_rtc_status warpcc_rtc_device_capability(const warpcc_rtc_device *device, uint32_t *capability);

/**
 * Loads an image and returns the function with this name in it (`warpcc_rtc_image_lowered_name`).
 */
warpcc_rtc_status warpcc_rtc_device_load(const warpcc_rtc_device *device,
                                         const warpcc_rtc_image *image,
                                         const char *lowered,
                                         warpcc_rtc_function **function);

/**
 * Frees the device. A primary context is released; functions loaded with it stay valid.
 */
void warpcc_rtc_device_free(warpcc_rtc_device *device);

/**
 * The driver's `CUfunction`, which is valid as long as the function; null for null.
 */
CUfunc_st *warpcc_rtc_function_cuda(const warpcc_rtc_function *function);

/**
 * The function's name in its image, which is valid as long as the function; "" for null.
 */
const char *warpcc_rtc_function_name(const warpcc_rtc_function *function);

/**
 * Starts a kernel on `stream` (null: the default stream) and does not wait for it. `arguments` contains a pointer to each
 * of the kernel's `count` arguments, as for `cuLaunchKernel`. Drivers from 12.4 on report how many a kernel takes, and any
 * other number is refused. The function's context becomes the thread's.
 */
warpcc_rtc_status warpcc_rtc_function_launch(const warpcc_rtc_function *function,
                                             const warpcc_rtc_shape *shape,
                                             CUstream_st *stream,
                                             void *const *arguments,
                                             size_t count);

/**
 * Frees the function. Its module stays loaded while a cache or another function of it uses it.
 */
void warpcc_rtc_function_free(warpcc_rtc_function *function);

/**
 * Plans a function of one array ("relu"; docs/kernels.md lists all). `write` is a `warpcc_rtc_write`. This needs no GPU and
 * does not read the arrays.
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
 * Plans a reduction ("sum", "max", "norm2") over `count` axes of `x` (negative ones count from the last; null: all axes).
 * The output has the remaining axes, or all, with the reduced ones of size 1.
 */
warpcc_rtc_status warpcc_rtc_plan_reduce(const char *reduction,
                                         const warpcc_rtc_tensor *x,
                                         const int64_t *axes,
                                         size_t count,
                                         const warpcc_rtc_tensor *output,
                                         int32_t write,
                                         warpcc_rtc_plan **plan);

/**
 * The number of kernels that a plan starts (0 if there is nothing to do), and the bytes of device memory that they share
 * while they run.
 */
warpcc_rtc_status warpcc_rtc_plan_size(const warpcc_rtc_plan *plan,
                                       size_t *kernels,
                                       uint64_t *workspace);

/**
 * Compiles a plan's kernels for `target` ("sm_90") into a cache's folders, where a launcher with the same settings finds
 * them. This needs no GPU.
 */
warpcc_rtc_status warpcc_rtc_plan_warm(const warpcc_rtc_plan *plan,
                                       const warpcc_rtc_cache *cache,
                                       const char *target,
                                       const warpcc_rtc_limits *limits);

/**
 * Frees the plan; kernels that it started go on.
 */
void warpcc_rtc_plan_free(warpcc_rtc_plan *plan);

/**
 * Makes a launcher for a GPU. It uses the cache's compiler, settings and shared caches, with counts of its own.
 */
warpcc_rtc_status warpcc_rtc_launcher_new(const warpcc_rtc_cache *cache,
                                          const warpcc_rtc_device *device,
                                          warpcc_rtc_launcher **launcher);

/**
 * Starts a plan's kernels on `stream` (null: the default stream) and does not wait for them. It first asks the driver
 * whether it knows the arrays' addresses. The caller must make sure that the arrays have the stated sizes and stay until
 * the stream is done. The GPU's context becomes the thread's.
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
 * Copies the launcher's remarks, as `warpcc_rtc_cache_remarks` copies those of a cache.
 */
warpcc_rtc_status warpcc_rtc_launcher_remarks(const warpcc_rtc_launcher *launcher,
                                              char *buffer,
                                              size_t size,
                                              size_t *length);

/**
 * Frees the launcher; kernels that it started go on.
 */
void warpcc_rtc_launcher_free(warpcc_rtc_launcher *launcher);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WARPCC_RTC_H */
