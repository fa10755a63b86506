// A stand-in for libcuda.so.1: the calls that the Python package makes to launch a kernel, written down line by line in the
// file of FAKE_LAUNCHES, so that what reaches a driver can be looked at where no GPU is. It runs nothing.
//
// It has two GPUs of compute capability 9.0. Addresses from 0x7f0000000000 on are GPU 0's, from 0x7f1000000000 on GPU 1's. A
// kernel's parameters are those in FAKE_PARAMETERS: sizes with commas between.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char context[2], module, function;
static __thread void *current;

static void note(const char *format, ...) {
    const char *path = getenv("FAKE_LAUNCHES");
    FILE *file = path ? fopen(path, "a") : 0;
    if (!file) return;
    va_list list;
    va_start(list, format);
    vfprintf(file, format, list);
    va_end(list);
    fclose(file);
}

static int sizes(unsigned *size) {
    const char *text = getenv("FAKE_PARAMETERS");
    int count = 0;
    while (text && *text) {
        size[count++] = strtoul(text, (char **)&text, 10);
        if (*text) text++;
    }
    return count;
}

int cuInit(unsigned flags) { return flags; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal > 1 ? 101 : 0; }
int cuDeviceGetAttribute(int *value, int what, int device) { *value = what == 75 ? 9 : 0; return device > 1; }
int cuDevicePrimaryCtxRetain(void **made, int device) { *made = &context[device]; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device > 1; }
int cuCtxSetCurrent(void *given) { current = given; return 0; }
int cuCtxGetCurrent(void **given) { *given = current; return 0; }
int cuCtxGetDevice(int *device) { *device = current == &context[1]; return !current; }
int cuModuleLoadData(void **made, const void *image) {
    note("load %.4s\n", (const char *)image + 1);
    *made = &module;
    if (getenv("FAKE_REFUSAL")) return atoi(getenv("FAKE_REFUSAL"));
    return memcmp(image, "\177ELF", 4) ? 218 : 0;
}
int cuModuleUnload(void *given) { return given != &module; }
int cuModuleGetFunction(void **made, void *given, const char *name) {
    note("function %s\n", name);
    *made = &function;
    return given != &module;
}
int cuFuncGetAttribute(int *value, int what, void *given) { *value = what ? 0 : 512; return given != &function; }
int cuFuncSetAttribute(void *given, int what, int value) { note("attribute %d %d\n", what, value); return given != &function; }
int cuFuncGetParamInfo(void *given, size_t index, size_t *offset, size_t *size) {
    unsigned all[64];
    if (given != &function || index >= (size_t)sizes(all)) return 1;
    *offset = 0, *size = all[index];
    return 0;
}
int cuPointerGetAttribute(void *value, int what, uint64_t address) {
    if (address < 0x7f0000000000) return 1;
    *(int *)value = what == 9 ? address >= 0x7f1000000000 : 2;
    return 0;
}
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = &module; return 0; }
int cuEventRecord(void *event, void *stream) { note("record %p\n", stream); return event != &module; }
int cuEventDestroy_v2(void *event) { return event != &module; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { note("wait %p\n", stream); return event != &module || flags; }
int cuLaunchKernel(void *given, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **values, void **extra) {
    unsigned all[64];
    int count = sizes(all);
    note("launch gpu %d grid %u,%u,%u block %u,%u,%u shared %u stream %p", current == &context[1], gx, gy, gz, bx, by,
         bz, shared, stream);
    for (int i = 0; i < count; i++) {
        note(" ");
        for (unsigned byte = 0; byte < all[i]; byte++) note("%02x", ((unsigned char *)values[i])[byte]);
    }
    note("\n");
    return given != &function || extra != 0;
}
int cuMemPoolCreate(void **made, const void *properties) {
    const int *all = properties; // Pinned memory of a device, not shared by a handle: type, handles, where, which.
    note("pool %d %d %d %d\n", all[0], all[1], all[2], all[3]);
    *made = &module;
    return 0;
}
int cuMemPoolSetAttribute(void *pool, int what, uint64_t *value) { note("pool attribute %d %llu\n", what, (unsigned long long)*value); return pool != &module; }
int cuMemPoolDestroy(void *pool) { note("pool destroyed\n"); return pool != &module; }
int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
    *address = 0x7f0f00000000;
    note("take %zu stream %p\n", bytes, stream);
    return pool != &module;
}
int cuMemFreeAsync(uint64_t address, void *stream) { note("give %llx stream %p\n", (unsigned long long)address, stream); return 0; }
int cuGetErrorName(int error, const char **name) { *name = error == 218 ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_FAKE"; return 0; }
