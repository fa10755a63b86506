"""CuPy, cuda.core and Numba-CUDA on a GPU with this package's cache: the kernels give the right numbers, the first process compiles
them, and the next one compiles nothing. Then 100 kernels compiled one after another and by `compile_many`, and launched from a pack.

    python3 adapters.py OUT.json

Needs the wheel, PyTorch and NVRTC; each of the three packages is left out, and the output says so, where it cannot be imported.
crates/kernels/gpu/run.sh starts this. Exit code: 0 if everything is right.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

FACTOR = 3.0
SOURCE = '#include "factor.h"\ntemplate<class T> __global__ void scale(T* x, T by, int n) {\n' \
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] *= by * FACTOR;\n}\n"


def expect(what, given, wanted):
    numpy.testing.assert_allclose(given, wanted, rtol=1e-6, err_msg=what)


def with_cupy(folder):
    import cupy
    import warpcc_rtc
    import warpcc_rtc.cupy

    warpcc_rtc.cupy.install()
    x = cupy.arange(1000, dtype=cupy.float32)
    module = cupy.RawModule(code=SOURCE, options=("--std=c++17", "-I" + folder), name_expressions=("scale<float>", "scale<double>"))
    module.get_function("scale<float>")((4,), (256,), (x, cupy.float32(2), 1000))
    expect("RawModule", cupy.asnumpy(x), numpy.arange(1000) * 2 * FACTOR)
    y = cupy.arange(1000, dtype=cupy.float64)
    module.get_function("scale<double>")((4,), (256,), (y, cupy.float64(2), 1000))
    expect("RawModule, double", cupy.asnumpy(y), numpy.arange(1000) * 2 * FACTOR)
    raw = cupy.RawKernel('extern "C" __global__ void one(float* x) { x[threadIdx.x] = threadIdx.x; }', "one")
    raw((1,), (32,), (x,))
    expect("RawKernel", cupy.asnumpy(x[:32]), numpy.arange(32))
    plus = cupy.ElementwiseKernel("float32 a, float32 b", "float32 c", "c = a * 2 + b", "plus")
    expect("ElementwiseKernel", cupy.asnumpy(plus(x, x)), 3 * cupy.asnumpy(x))
    total = cupy.ReductionKernel("float32 a", "float32 b", "a * a", "a + b", "b = a", "0", "squares")
    expect("ReductionKernel", cupy.asnumpy(total(x[:32])), (numpy.arange(32.0) ** 2).sum())
    expect("ufunc", cupy.asnumpy(cupy.exp(x[:32] / 32)), numpy.exp(numpy.arange(32) / 32))
    return warpcc_rtc.default_cache()


def with_cuda_core(folder):
    import torch
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    import warpcc_rtc
    import warpcc_rtc.cuda_core

    device = Device()
    device.set_current()
    stream = device.create_stream()
    x = torch.arange(1000, dtype=torch.float32, device="cuda")
    torch.cuda.synchronize()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", include_path=[folder])
    image = warpcc_rtc.cuda_core.compile(SOURCE, "cubin", options, ("scale<float>",))
    launch(stream, LaunchConfig(grid=4, block=256), image.get_kernel("scale<float>"), x.data_ptr(), numpy.float32(2), numpy.int32(1000))
    with warpcc_rtc.cuda_core.ProgramCache() as cache:
        plain = Program('extern "C" __global__ void one(float* x) { x[threadIdx.x] += 1; }', "c++", ProgramOptions(arch=f"sm_{device.arch}"))
        again = plain.compile("cubin", cache=cache)
    launch(stream, LaunchConfig(grid=1, block=32), again.get_kernel("one"), x.data_ptr())
    stream.sync()
    wanted = numpy.arange(1000) * 2 * FACTOR
    wanted[:32] += 1
    expect("cuda.core", x.cpu().numpy(), wanted)
    return warpcc_rtc.default_cache()


def with_numba(folder):
    from numba import cuda
    import warpcc_rtc
    import warpcc_rtc.numba

    warpcc_rtc.numba.install()

    @cuda.jit
    def scale(x, by):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= by

    x = cuda.to_device(numpy.arange(1000, dtype=numpy.float32))
    scale[4, 256](x, 2.0)
    expect("Numba", x.copy_to_host(), numpy.arange(1000) * 2)
    return warpcc_rtc.default_cache()


STEPS = {"cupy": with_cupy, "cuda.core": with_cuda_core, "numba": with_numba}


def many(count):
    return [
        {
            "source": f"template<class T> __global__ void k(T* x) {{ int i = threadIdx.x; x[i] = i * {number} + sqrtf(float(x[i])); }}",
            "name": "k<float>",
            "options": ["--std=c++17"],
        }
        for number in range(count)
    ]


def first_start(rows, folder):
    """100 kernels: one after another, all at once, and from a pack in which they were before."""
    import torch
    import warpcc_rtc

    warpcc_rtc.KernelCache([f"{folder}/warm-up"], remote="none", packs=[]).compile(**many(1)[0])
    begun = time.perf_counter()
    one = warpcc_rtc.KernelCache([f"{folder}/one"], remote="none", packs=[])
    for kernel in many(100):
        one.compile(**kernel)
    serial = time.perf_counter() - begun
    begun = time.perf_counter()
    pack = f"{folder}/ours.warpcc-pack"
    os.makedirs(pack)
    warpcc_rtc.KernelCache([pack], remote="none", packs=[]).compile_many(many(100))
    together = time.perf_counter() - begun
    cache = warpcc_rtc.KernelCache([f"{folder}/empty"], remote="none", packs=[pack])
    begun = time.perf_counter()
    for number, kernel in enumerate(many(100)):
        x = torch.full((32,), 4.0, device="cuda")
        cache.compile(**kernel).function("k<float>")[1, 32](x)
        expect("from a pack", x.cpu().numpy(), numpy.arange(32) * number + 2)
    packed = time.perf_counter() - begun
    assert cache.counts["made"] == 0, cache.counts
    row = {"what": "100 kernels", "cores": os.cpu_count(), "one_after_another_s": serial, "compile_many_s": together,
           "times_as_fast": serial / together, "from_a_pack_and_launched_s": packed}
    print(json.dumps(row), flush=True)
    rows.append(row)


def step(name, folder):
    cache = STEPS[name](folder)
    print(json.dumps({"made": cache.counts["made"], "found": cache.counts["disk"], "remarks": cache.remarks}))


def main(out):
    rows, wrong = [], []
    modules = {"cupy": "cupy", "cuda.core": "cuda", "numba": "numba_cuda"}
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "factor.h").write_text(f"#define FACTOR {FACTOR}f\n")
        for name in STEPS:
            if importlib.util.find_spec(modules[name]) is None or (name == "cuda.core" and importlib.util.find_spec("cuda.core") is None):
                print(f"{name}: not installed, left out", flush=True)
                continue
            if name == "numba" and subprocess.run([sys.executable, "-c", "from numba import cuda; cuda.jit('void(float32[:])')(lambda x: None)"],
                                                  stderr=subprocess.DEVNULL).returncode:
                print(f"{name}: does not work here without this package either, left out", flush=True)
                continue
            environment = {**os.environ, "WARPCC_RTC_CACHE": f"{folder}/cache of {name}", "CUPY_CACHE_DIR": f"{folder}/cupy",
                           "NUMBA_CUDA_USE_NVIDIA_BINDING": "1"}
            for run in ("first", "second"):
                begun = time.perf_counter()
                command = [sys.executable, __file__, "--step", name, folder]
                ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                row = {"what": name, "run": run, "s": time.perf_counter() - begun}
                if ended.returncode:
                    row["error"] = ended.stderr[-3000:]
                else:
                    row.update(json.loads(ended.stdout.splitlines()[-1]))
                right = not ended.returncode and not row["remarks"] and (row["made"] > 0) == (run == "first")
                print(("" if right else "WRONG ") + json.dumps(row), flush=True)
                rows.append(row)
                if not right:
                    wrong.append(row)
        first_start(rows, folder)
    pathlib.Path(out).write_text(json.dumps({"rows": rows, "wrong": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--step":
        step(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1]))
