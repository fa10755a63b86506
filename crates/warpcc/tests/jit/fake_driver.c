// A stand-in for libcuda.so.1: the calls that warpcc makes, and a cache of its own in
// CUDA_CACHE_PATH, so that `warpcc jit warm` can be tried where no GPU is.
//
// It "compiles" in 100 ms, keeps what it compiled by content, refuses modules with a kernel
// `refuse`, crashes over a kernel `crash`, and forgets everything with FAKE_FORGETS=1.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is(const char *name, const char *value) {
    const char *found = getenv(name);
    return found && !strcmp(found, value);
}

int cuInit(unsigned flags) { return flags || is("FAKE_NO_GPU", "1") ? 100 : 0; }
int cuDriverGetVersion(int *version) { *version = 13050; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 7; return ordinal ? 101 : 0; }
int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, "a fake");
    return device != 7;
}
int cuDeviceGetAttribute(int *value, int what, int device) {
    *value = what == 75 ? 9 : 0;
    return device != 7;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &cuInit; return device != 7; }
int cuCtxSetCurrent(void *context) { return context != (void *)&cuInit; }
int cuModuleUnload(void *module) { return module != (void *)&cuInit; }
int cuGetErrorName(int error, const char **name) {
    *name = error == 218 ? "CUDA_ERROR_INVALID_PTX" : error == 223 ? "CUDA_ERROR_JIT_COMPILATION_DISABLED"
          : error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 101 ? "CUDA_ERROR_INVALID_DEVICE" : 0;
    return !*name;
}

int cuModuleLoadData(void **module, const void *image) {
    uint64_t size = strlen(image), hash = 14695981039346656037u;
    if (*(const uint32_t *)image == 0xba55ed50) size = 16 + ((const uint64_t *)image)[1];
    if ((uintptr_t)image % 8) return 1;
    if (memmem(image, size, "entry crash", 11)) abort();
    if (memmem(image, size, "entry refuse", 12)) return 218;
    for (uint64_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)image)[i]) * 1099511628211u;
    *module = &cuInit;
    char path[4096], folder[4096];
    const char *top = getenv("CUDA_CACHE_PATH");
    int keeps = top && !is("CUDA_CACHE_DISABLE", "1") && !is("FAKE_FORGETS", "1");
    snprintf(folder, sizeof folder, "%s/%llx", top, (unsigned long long)hash % 16);
    snprintf(path, sizeof path, "%s/%016llx", folder, (unsigned long long)hash);
    if (keeps && !access(path, R_OK)) return 0;
    if (is("CUDA_DISABLE_PTX_JIT", "1")) return 223;
    usleep(100000);
    // As a lazily loaded module: nothing is compiled before a kernel is wanted.
    if (!keeps || !is("CUDA_MODULE_LOADING", "EAGER")) return 0;
    mkdir(top, 0700);
    mkdir(folder, 0700);
    FILE *entry = fopen(path, "w");
    if (entry) fwrite(image, 1, size, entry), fclose(entry);
    snprintf(path, sizeof path, "%s/index", top);
    entry = fopen(path, "a");
    if (entry) fputs("entry\n", entry), fclose(entry);
    return 0;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    int error = cuModuleLoadData(module, image);
    for (unsigned i = 0; error && i + 1 < count; i++)
        if (options[i] == 5 && options[i + 1] == 6)
            snprintf(values[i], (size_t)values[i + 1], "ptxas application ptx input, line 6; error : no");
    return error;
}
