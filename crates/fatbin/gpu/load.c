// Loads a fat binary with the driver API and runs its kernel `which`.
//
// Prints `error N` with the driver's error, or `ran N` with the number that the kernel wrote.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what, CUresult error) {
    fprintf(stderr, "%s\n", what);
    printf("error %d\n", (int)error);
    return 0;
}

int main(int count, char **words) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    int result = -1, version = 0, major = 0, minor = 0;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context)) {
        fprintf(stderr, "no GPU\n");
        return 2;
    }
    cuDriverGetVersion(&version);
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (count < 2) {
        printf("%d.%d sm_%d%d\n", version / 1000, version % 1000 / 10, major, minor);
        return 0;
    }
    FILE *file = fopen(words[1], "rb");
    if (!file) return 2;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *image = calloc(1, (size_t)size + 1);
    if (!image || fread(image, 1, (size_t)size, file) != (size_t)size) return 2;
    CUresult error = cuModuleLoadData(&module, image);
    if (error) return failed("cuModuleLoadData", error);
    if ((error = cuModuleGetFunction(&function, module, "which")))
        return failed("cuModuleGetFunction", error);
    if ((error = cuMemAlloc(&memory, sizeof result))) return failed("cuMemAlloc", error);
    void *arguments[] = {&memory};
    if ((error = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0)))
        return failed("cuLaunchKernel", error);
    if ((error = cuMemcpyDtoH(&result, memory, sizeof result))) return failed("cuMemcpyDtoH", error);
    printf("ran %d\n", result);
    return 0;
}
