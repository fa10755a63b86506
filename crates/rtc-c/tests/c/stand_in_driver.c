/* A stand-in for libcuda.so.1 on machines without a GPU: it answers as a driver of 13.0 with one GPU of compute capability
   9.0 would, runs nothing, and tells the test what it was asked. What a real driver does with it is shown on a GPU. */
#include "stand_in_driver.h"

#include <string.h>

typedef int CUresult;

enum { OK = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

static struct stand_in_launch last;
static size_t sizes[16];
static size_t size_count;
static char failing[64];
static int failing_with;
static int loads, unloads, destroyed, retained;
static _Thread_local void *current;
static char primary; /* its address is the primary context */

struct stand_in_launch *stand_in_last(void) { return &last; }
int stand_in_loads(void) { return __atomic_load_n(&loads, __ATOMIC_SEQ_CST); }
int stand_in_unloads(void) { return __atomic_load_n(&unloads, __ATOMIC_SEQ_CST); }
int stand_in_destroyed(void) { return destroyed; }
int stand_in_retained(void) { return __atomic_load_n(&retained, __ATOMIC_SEQ_CST); }
void *stand_in_primary(void) { return &primary; }

void stand_in_sizes(const size_t *of, size_t count) {
  memcpy(sizes, of, count * sizeof *of);
  size_count = count;
}

void stand_in_fail(const char *function, int code) {
  strncpy(failing, function, sizeof failing - 1);
  failing_with = code;
}

#define MAY_FAIL                                                    \
  if (failing[0] && strcmp(failing, __func__) == 0) {               \
    failing[0] = 0;                                                 \
    return failing_with;                                            \
  }

CUresult cuInit(unsigned flags) { MAY_FAIL return flags ? INVALID_VALUE : OK; }
CUresult cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
  (void)function;
  if (index >= size_count) return INVALID_VALUE;
  *offset = 0;
  *size = sizes[index];
  return OK;
}
CUresult cuDriverGetVersion(int *version) { *version = 13000; return OK; }
CUresult cuDeviceGet(int *device, int ordinal) {
  MAY_FAIL
  *device = ordinal;
  return ordinal == 0 ? OK : 101;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 75: *value = 9; break;  /* compute capability, major */
    case 76: *value = 0; break;  /* and minor */
    case 115: *value = 1; break; /* memory pools */
    default: *value = 0;
  }
  return OK;
}
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  __atomic_fetch_add(&retained, 1, __ATOMIC_SEQ_CST);
  *context = &primary;
  return OK;
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  __atomic_fetch_sub(&retained, 1, __ATOMIC_SEQ_CST);
  return OK;
}
CUresult cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  (void)device;
  *flags = 0;
  *active = stand_in_retained() > 0 || current == &primary;
  return OK;
}
CUresult cuCtxGetCurrent(void **context) { *context = current; return OK; }
CUresult cuCtxSetCurrent(void *context) { current = context; return OK; }
CUresult cuCtxGetDevice(int *device) { *device = 0; return current ? OK : INVALID_CONTEXT; }
CUresult cuCtxDestroy_v2(void *context) { (void)context; ++destroyed; return OK; }

static struct { char name[128]; } functions[256];
static int function_count;

CUresult cuModuleLoadData(void **module, const void *image) {
  MAY_FAIL
  if (!current) return INVALID_CONTEXT;
  if (memcmp(image, "\177ELF", 4) != 0 && strstr(image, ".version") == NULL) return 200;
  *module = (void *)(size_t)(0x1000 + __atomic_add_fetch(&loads, 1, __ATOMIC_SEQ_CST));
  return OK;
}
CUresult cuModuleUnload(void *module) {
  (void)module;
  __atomic_fetch_add(&unloads, 1, __ATOMIC_SEQ_CST);
  return OK;
}
CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
  int index;
  (void)module;
  MAY_FAIL
  if (strstr(name, "missing")) return NOT_FOUND;
  index = __atomic_fetch_add(&function_count, 1, __ATOMIC_SEQ_CST) % 256;
  strncpy(functions[index].name, name, sizeof functions[index].name - 1);
  *function = &functions[index];
  return OK;
}
CUresult cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **arguments, void **extra) {
  size_t index, at = 0;
  MAY_FAIL
  if (!current || extra) return INVALID_CONTEXT;
  last.function = function;
  last.name = (const char *)function;
  last.grid[0] = gx; last.grid[1] = gy; last.grid[2] = gz;
  last.block[0] = bx; last.block[1] = by; last.block[2] = bz;
  last.shared = shared;
  last.stream = stream;
  last.context = current;
  ++last.count;
  for (index = 0; index < size_count; ++index) {
    memcpy(last.arguments + at, arguments[index], sizes[index]);
    at += sizes[index];
  }
  return OK;
}
/* Device memory is from 16 to 32 MiB. */
CUresult cuPointerGetAttribute(void *value, int attribute, unsigned long long address) {
  if (attribute != 2 || address < 0x1000000 || address >= 0x2000000) return INVALID_VALUE;
  *(unsigned *)value = 2;
  return OK;
}
CUresult cuMemPoolCreate(void **pool, const void *properties) { (void)properties; *pool = pool; return OK; }
CUresult cuMemPoolSetAttribute(void *pool, int what, void *value) { (void)pool; (void)what; (void)value; return OK; }
CUresult cuMemPoolDestroy(void *pool) { (void)pool; return OK; }
CUresult cuMemAllocFromPoolAsync(unsigned long long *address, size_t bytes, void *pool, void *stream) {
  (void)bytes; (void)pool; (void)stream;
  *address = 0x1800000;
  return OK;
}
CUresult cuMemFreeAsync(unsigned long long address, void *stream) { (void)address; (void)stream; return OK; }
CUresult cuEventCreate(void **event, unsigned flags) { (void)flags; *event = &last; return OK; }
CUresult cuEventDestroy_v2(void *event) { (void)event; return OK; }
CUresult cuEventRecord(void *event, void *stream) { (void)event; (void)stream; return OK; }
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  (void)event; (void)stream; (void)flags;
  return OK;
}
CUresult cuGetErrorName(int code, const char **name) {
  *name = code == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : code == 1 ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_OTHER";
  return OK;
}
CUresult cuGetErrorString(int code, const char **text) { (void)code; *text = "told by the stand-in"; return OK; }
