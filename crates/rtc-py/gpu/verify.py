"""The Python package on a machine with a GPU: right results against PyTorch, current streams, DLPack and
__cuda_array_interface__; what calls cost, compared with CuPy's RawKernel, cuda.core's caches and PyTorch (the rates of what they
start: crates/kernels/gpu/peers.py); the first start of an application with 100 kernels: cold, warmed by `warpcc rtc warm`, and
with PTX for the driver's JIT.

    python3 verify.py OUT.json [--warpcc PATH] [--only results,streams,speed,start] [--quick] [--cases FOLDER --answers FILE]

With --cases, every function and type that `rtc-verify --role export` wrote down is run too, and the outputs are written for
`rtc-verify --role judge` to compare with its references.

Needs the wheel, PyTorch, CuPy and NVRTC; cuda.core (`pip install cuda-core`) where its cache is to be compared.
crates/kernels/gpu/run.sh installs the wheel and starts this. Exit code: 0 if every result is right.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import warpcc_rtc as rtc

try:
    import cupy
except Exception as error:  # Without it the rest is still worth knowing.
    print(f"no CuPy: {error}")
    cupy = None

ROWS, FAILURES = [], []
SCALE = 'extern "C" __global__ void scale(float* x, float by, int n) {\n' \
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] *= by + OFFSET;\n}\n"


def note(**row):
    ROWS.append(row)
    print(json.dumps(row), flush=True)


def check(what, holds, told=""):
    if not holds:
        FAILURES.append(f"{what}: {told}")
        print(f"WRONG  {what}: {told}", flush=True)


def close(what, given, wanted, tolerance):
    """`given` against `wanted`, computed in double."""
    given, wanted = given.double(), wanted.double()
    # What double holds may be beyond half.
    error = ((given - wanted).abs() / (1 + wanted.abs())).nan_to_num(0).max().item() if given.numel() else 0.0
    same = given.shape == wanted.shape and bool((given.isnan() == wanted.isnan()).all())
    check(what, same and error <= tolerance, f"off by {error:.3g} of {tolerance:.3g}, shapes {given.shape} {wanted.shape}")
    return error


TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.float64: 1e-12}


def results(cache, quick):
    """Functions, broadcasts, reductions and expressions against PyTorch in double."""
    torch.manual_seed(time.time_ns() % (1 << 31))
    sizes = [(0,), (1,), (7,), (1031,), (33, 65), (4, 3, 129)] + ([] if quick else [(1 << 20,), (2047, 1025)])
    unary = {
        "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp, "square": torch.square,
        "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu, "erf": torch.erf, "abs": torch.abs,
    }
    for dtype, tolerance in TOLERANCE.items():
        for shape in sizes:
            x = torch.randn(shape, device="cuda", dtype=torch.float64).to(dtype)
            y = torch.randn(shape[-1:], device="cuda", dtype=torch.float64).to(dtype)
            for name, reference in unary.items():
                given = rtc.unary(name, x, cache=cache)
                check(f"{name} {dtype}", given.dtype == dtype and given.device == x.device, f"{given.dtype}")
                close(f"{name} {dtype} {shape}", given, reference(x.double()), tolerance)
            close(f"add {dtype} {shape}", rtc.binary("add", x, y, cache=cache), x.double() + y.double(), tolerance)
            # A poisoned output, written; then added to.
            out = torch.full_like(x, float("nan"))
            rtc.fused("relu(a * x + b)", a=2.5, x=x, b=y, out=out, cache=cache)
            wanted = torch.relu(2.5 * x.double() + y.double())
            close(f"fused {dtype} {shape}", out, wanted, 4 * tolerance)
            rtc.fused("relu(a * x + b)", a=2.5, x=x, b=y, out=out, add=True, cache=cache)
            close(f"fused, added {dtype} {shape}", out, 2 * wanted, 8 * tolerance)
            if len(shape) > 1 and x.numel():
                transposed = x.transpose(0, 1)
                close(f"transposed {dtype} {shape}", rtc.unary("exp", transposed, cache=cache), transposed.double().exp(), tolerance)
                stepped = x[..., 1::2]
                close(f"stepped {dtype} {shape}", rtc.unary("exp", stepped, cache=cache), stepped.double().exp(), tolerance)
                for axis in (0, -1, None):
                    wanted = x.double().sum() if axis is None else x.double().sum(axis)
                    # Against the sum of sizes: what cancels is not the kernel's.
                    scale = x.double().abs().sum().item() if axis is None else x.double().abs().sum(axis).max().item()
                    given = rtc.reduce("sum", x, axis, cache=cache)
                    error = (given.double() - wanted).abs().max().item()
                    check(f"sum {dtype} {shape} {axis}", given.shape == wanted.shape and error <= tolerance * (1 + scale), error)
                    given = rtc.reduce("max", x, axis, keepdims=True, cache=cache)
                    wanted = x.amax() if axis is None else x.amax(axis, keepdim=True)
                    check(f"max {dtype} {shape} {axis}", bool((given.reshape(wanted.shape) == wanted).all()), "")
    a, b = (torch.randint(-99, 99, (1031,), device="cuda", dtype=torch.int32) for _ in range(2))
    check("int32", bool((rtc.binary("mul", a, b, cache=cache) == a * b).all()))
    greater = rtc.binary("greater", a, b, cache=cache)
    check("bool", greater.dtype == torch.bool and bool((greater == (a > b)).all()))
    if cupy is not None:
        x = cupy.random.standard_normal((33, 65)).astype(cupy.float32)
        given = rtc.unary("exp", x, cache=cache)
        check("cupy", isinstance(given, cupy.ndarray) and bool(cupy.allclose(given, cupy.exp(x), rtol=1e-5)))

        class Described:
            """By the array interface alone, as Numba's arrays."""

            def __init__(self, array):
                self.__cuda_array_interface__ = array.__cuda_array_interface__

        out = cupy.full((65, 33), cupy.nan, dtype=cupy.float32)
        rtc.unary("exp", Described(x.T), Described(out), cache=cache)
        check("__cuda_array_interface__", bool(cupy.allclose(out, cupy.exp(x.T), rtol=1e-5)))
    refused = 0
    for wrong in (torch.zeros(4), torch.zeros(4, device="cuda", dtype=torch.complex64), [1.0]):
        try:
            rtc.unary("exp", wrong, cache=cache)
        except (rtc.ArgumentError, TypeError):
            refused += 1
    check("wrong arrays are refused", refused == 3)
    needs = torch.zeros(4, device="cuda", requires_grad=True)
    try:
        rtc.unary("exp", needs, cache=cache)
        check("an array that needs gradients is refused", False)
    except BufferError:
        pass
    torch.cuda.synchronize()


TYPES = {
    "bool": torch.bool, "int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16, "uint16": torch.uint16, "int32": torch.int32,
    "uint32": torch.uint32, "int64": torch.int64, "uint64": torch.uint64, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "float8_e4m3": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2, "float32": torch.float32, "float64": torch.float64,
}


def functions(cases, answers, kernels):
    """Every function and type, with the kernels that another program (from C++) left in the folder `kernels`, if it did."""
    cache = rtc.KernelCache([kernels], remote="none")
    guard, poison = 512, 0xA5
    done = 0
    with open(f"{cases}/cases", encoding="utf-8") as lines, open(f"{cases}/data", "rb") as data, open(answers, "wb") as out:
        for line in lines:
            name, request, count, *arrays = line.split()
            count = int(count)

            def array(place):
                dtype, off = TYPES[arrays[2 * place]], int(arrays[2 * place + 1])
                size = count * dtype.itemsize
                return dtype, guard + off * dtype.itemsize, size

            given = []
            for place in range(1, len(arrays) // 2):
                dtype, begin, size = array(place)
                memory = torch.empty(begin + size, device="cuda", dtype=torch.uint8)
                memory[begin:] = torch.frombuffer(bytearray(data.read(size)), dtype=torch.uint8).cuda()
                given.append(memory[begin:].view(dtype))
            dtype, begin, size = array(0)
            memory = torch.full((begin + size + guard,), poison, device="cuda", dtype=torch.uint8)
            memory[begin : begin + size] = torch.frombuffer(bytearray(data.read(size)), dtype=torch.uint8).cuda()
            target = memory[begin : begin + size].view(dtype)
            how = {"out": target, "add": request == "add", "cache": cache}
            try:
                if len(given) == 1:
                    rtc.unary(name, *given, **how)
                elif len(given) == 2:
                    rtc.binary(name, *given, **how)
                else:
                    names = "abcd"[: len(given)]
                    rtc.fused(f"{name}({', '.join(names)})", **dict(zip(names, given)), **how)
            except Exception as error:
                check(line.strip(), False, f"{type(error).__name__}: {error}")
            whole = memory.cpu().numpy().tobytes()
            around = whole[:begin] + whole[begin + size :]
            check(f"beside the output: {line.strip()}", around == bytes([poison]) * len(around))
            out.write(whole[begin : begin + size])
            done += 1
    note(what="functions from Python", cases=done, counts=cache.counts)
    check("remarks", cache.remarks == [], cache.remarks)


def launches_and_streams(cache):
    """Kernels of a user's own, on current streams that are not the default one, behind slow work."""
    n = 1 << 20
    kernel = cache.get_function("#define OFFSET 1", "scale", SCALE)
    x = torch.ones(n, device="cuda")
    kernel[(n + 255) // 256, 256](x, 2.0, n)
    check("a kernel", bool((x == 3).all()))
    kernel.launch((n + 255) // 256, 256, [x, 1.0, n - 1])
    check("launch", x[-1].item() == 3 and bool((x[:-1] == 6).all()))
    for wrong in ((x,), (x, 1.0, 1 << 40), (x, 1.0, torch.zeros(1)), ([1], 1.0, 1)):
        try:
            kernel[1, 1](*wrong)
            check(f"refused: {len(wrong)} arguments", False)
        except (rtc.ArgumentError, TypeError):
            pass
    stream = torch.cuda.Stream()
    for _ in range(20):
        with torch.cuda.stream(stream):
            y = torch.zeros(n, device="cuda")
            torch.cuda._sleep(3_000_000)
            y += 1
            # Behind what is on PyTorch's current stream, and before what comes next there.
            z = rtc.fused("a * y + b", a=3.0, y=y, b=1.0, cache=cache)
            kernel[(n + 255) // 256, 256](z, 1.0, n)
            y.zero_()
        stream.synchronize()
        check("PyTorch's current stream", bool((z == 8).all()), f"{z[:4]}")
    if cupy is not None:
        own = cupy.cuda.Stream(non_blocking=True)
        with own:
            c = cupy.zeros(n, dtype=cupy.float32)
            c += 1
            d = rtc.fused("c + 1", c=c, cache=cache)
        own.synchronize()
        check("CuPy's current stream", bool((d == 2).all()))
        # An array of CuPy's given on a stream of PyTorch's: the interface names the stream to wait for.
        kernel[(n + 255) // 256, 256](d, 1.0, n, stream=stream)
        stream.synchronize()
        check("another's stream", bool((d == 4).all()))
    if torch.cuda.device_count() > 1:
        far = torch.ones(n, device="cuda:1")
        check("another GPU", bool((rtc.unary("square", far, cache=cache) == 1).all()) and torch.cuda.current_device() == 0)


def seconds(run, rounds=2000, batches=7):
    """The median of a call's time, in batches so that the clock does not count."""
    return in_turns({"": run}, rounds, batches)[""]


def in_turns(runs, rounds=300, batches=15):
    """The median of each one's time, one after another in each batch: what disturbs the processor for a while disturbs all."""
    times = {what: [] for what in runs}
    for run in runs.values():
        run()
    for _ in range(batches):
        for what, run in runs.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(rounds):
                run()
            times[what].append((time.perf_counter() - begin) / rounds)
    return {what: statistics.median(of) for what, of in times.items()}


def speed(cache, folder):
    x, y, out = (torch.ones(256, device="cuda") for _ in range(3))
    stream = torch.cuda.current_stream().cuda_stream
    ours = lambda: cache.get_function("#define OFFSET 1", "scale", SCALE)
    kernel = ours()
    many, total = torch.ones(1 << 22, device="cuda"), torch.empty((), device="cuda")

    def waited(run):
        run()
        torch.cuda.synchronize()

    # The peers' right behind ours.
    runs = {
        "get_function from memory": ours,
        "launch, array": lambda: kernel[1, 256](x, 1.0, 256),
        "launch, address and stream": lambda: kernel[1, 256](x.data_ptr(), 1.0, 256, stream=stream),
        "unary relu, 256 floats": lambda: rtc.unary("relu", x, out, cache=cache),
        "torch relu, 256 floats": lambda: torch.clamp_min(x, 0, out=out),
        "unary relu, 256 floats, new result": lambda: rtc.unary("relu", x, cache=cache),
        "torch relu, 256 floats, new result": lambda: torch.relu(x),
        "binary add, 256 floats": lambda: rtc.binary("add", x, y, out, cache=cache),
        "torch add, 256 floats": lambda: torch.add(x, y, out=out),
        "fused relu(a * x + y), 256 floats, new result": lambda: rtc.fused("relu(a * x + y)", a=2.0, x=x, y=y, cache=cache),
        "torch relu(2.0 * x + y), 256 floats, new result": lambda: torch.relu(2.0 * x + y),
        "reduce sum, 256 floats": lambda: rtc.reduce("sum", x, out=total, cache=cache),
        "torch sum, 256 floats": lambda: torch.sum(x, dim=0, out=total),
        "reduce sum, 4 million floats": lambda: rtc.reduce("sum", many, out=total, cache=cache),
        "torch sum, 4 million floats": lambda: torch.sum(many, dim=0, out=total),
        # As a program that looks at each result.
        "reduce sum, 4 million floats, waited for": lambda: waited(lambda: rtc.reduce("sum", many, out=total, cache=cache)),
        "torch sum, 4 million floats, waited for": lambda: waited(lambda: torch.sum(many, dim=0, out=total)),
    }
    if cupy is not None:
        raw = lambda: cupy.RawKernel("#define OFFSET 1\n" + SCALE, "scale")
        made, array = raw(), cupy.ones(256, dtype=cupy.float32)
        runs["CuPy RawKernel, launch"] = lambda: made((1,), (256,), (array, cupy.float32(1), cupy.int32(256)))
    for what, time_of in in_turns(runs).items():
        note(what=what, us=1e6 * time_of)
    # From disk: another cache of the same folder each time, so that nothing is in memory; its making is not counted.
    times = []
    for _ in range(20):
        fresh = rtc.KernelCache([f"{folder}/speed"], remote="none")
        fresh.compile(SCALE, "scale", fresh.best_arch(), parameters="#define OFFSET 7")
        begin = time.perf_counter()
        fresh.get_function("#define OFFSET 1", "scale", SCALE)
        times.append(time.perf_counter() - begin)
        assert fresh.counts["made"] == 0 or len(times) == 1, fresh.counts
    note(what="get_function from disk, loading included", us=1e6 * statistics.median(times[1:]))
    torch.cuda.synchronize()
    if cupy is not None:
        times = []
        for _ in range(20):
            cupy.clear_memo()
            begin = time.perf_counter()
            raw().compile()
            times.append(time.perf_counter() - begin)
        note(what="CuPy RawKernel from disk, loading included", us=1e6 * statistics.median(times[1:]))
    try:
        from cuda.core import Device, Program, ProgramOptions
        from cuda.core.utils import FileStreamProgramCache

        gpu = Device()
        gpu.set_current()
        major, minor = gpu.compute_capability
        options = ProgramOptions(arch=f"sm_{major}{minor}")
        with FileStreamProgramCache(f"{folder}/cuda-core") as theirs:
            make = lambda: Program("#define OFFSET 1\n" + SCALE, "c++", options).compile("cubin", cache=theirs).get_kernel("scale")
            make()
            note(what="cuda.core's file cache, loading included", us=1e6 * seconds(make, 50))
    except Exception as error:  # Its interface is young: what it says is all there is to know.
        note(what="cuda.core", not_measured=f"{type(error).__name__}: {error}"[:200])


APPLICATION = """
import sys, time
import warpcc_rtc as rtc
folder, how, arch = sys.argv[1:4]
source = open(folder + "/application.cu").read()
begin = time.perf_counter()
if how == "jit":
    # As an application with PTX next to it: the driver compiles.
    import ctypes
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for number in range(100):
        ptx = open(f"{folder}/{number}.ptx", "rb").read()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        assert cuda.cuModuleLoadData(ctypes.byref(module), ptx + b"\\0") == 0
        assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"kernel") == 0
    counts = {}
else:
    cache = rtc.KernelCache([folder + "/kernels-" + how], remote="none")
    for number in range(100):
        cache.get_function(f"#define NUMBER {number}", "kernel", source)
    counts = cache.counts
print(time.perf_counter() - begin, counts)
"""

APPLICATION_KERNEL = """
extern "C" __global__ void kernel(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0;
  #pragma unroll
  for (int k = 0; k < 32; k++) v = sinf(v) * NUMBER + cosf(v * k) + expf(-v * v);
  if (i < n) x[i] = v;
}
"""


def first_start(folder, warpcc, quick):
    """A process that needs 100 kernels: nothing kept, kept by an earlier one, warmed without a GPU, PTX for the driver."""
    del quick
    cache = rtc.KernelCache([f"{folder}/start"], remote="none")
    arch = cache.best_arch()
    with open(f"{folder}/application.cu", "w", encoding="utf-8") as file:
        file.write(APPLICATION_KERNEL)
    virtual = arch.replace("sm_", "compute_")

    def make_ptx(number):
        image = cache.compile(APPLICATION_KERNEL, "kernel", virtual, parameters=f"#define NUMBER {number}")
        with open(f"{folder}/{number}.ptx", "wb") as file:
            file.write(image.image)

    with concurrent.futures.ThreadPoolExecutor() as threads:
        list(threads.map(make_ptx, range(100)))

    def start(what, how, **environment):
        command = [sys.executable, "-c", APPLICATION, folder, how, arch]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
        if done.returncode:
            note(what=what, failed=done.stderr[-500:])
            FAILURES.append(what)
            return
        took, counts = done.stdout.split(" ", 1)
        note(what=what, seconds=float(took), counts=counts.strip())

    start("100 kernels, cold", "cold")
    start("100 kernels, second start", "cold")
    jit = {"CUDA_CACHE_PATH": f"{folder}/driver"}
    start("100 kernels, PTX by the driver's JIT, cold", "jit", **jit)
    start("100 kernels, PTX by the driver's JIT, second start", "jit", **jit)
    if not warpcc:
        note(what="warpcc rtc warm", not_measured="no --warpcc")
        return
    parameters = ", ".join(f'"#define NUMBER {number}"' for number in range(100))
    with open(f"{folder}/kernels.toml", "w", encoding="utf-8") as file:
        file.write(f'targets = ["{arch}"]\n[[kernel]]\nsource = "application.cu"\nnames = ["kernel"]\nparameters = [{parameters}]\n')
    environment = {**os.environ, "WARPCC_RTC_CACHE": f"{folder}/kernels-warmed", "WARPCC_REMOTE": "none"}
    begin = time.perf_counter()
    subprocess.run([warpcc, "rtc", "warm", f"{folder}/kernels.toml"], check=True, env=environment)
    note(what="warpcc rtc warm of 100 kernels", seconds=time.perf_counter() - begin)
    start("100 kernels, first start after warm", "warmed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--warpcc", default=shutil.which("warpcc"))
    parser.add_argument("--only", default="results,streams,speed,start")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases")
    parser.add_argument("--answers")
    parser.add_argument("--kernels")
    options = parser.parse_args()
    chosen = options.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        cache = rtc.KernelCache([f"{folder}/speed"], remote="none")
        if options.cases:
            functions(options.cases, options.answers, options.kernels or f"{folder}/functions")
        if "results" in chosen:
            results(cache, options.quick)
        if "streams" in chosen:
            launches_and_streams(cache)
        if "speed" in chosen:
            speed(cache, folder)
        if "start" in chosen:
            first_start(folder, options.warpcc, options.quick)
        versions = {"torch": torch.__version__, "cupy": getattr(cupy, "__version__", None), "nvrtc": cache.nvrtc_version}
        check("remarks", cache.remarks == [], cache.remarks)
    with open(options.out, "w", encoding="utf-8") as file:
        gpu = torch.cuda.get_device_name()
        json.dump({"gpu": gpu, **versions, "failures": FAILURES, "rows": ROWS}, file, indent=1)
    print(f"{len(FAILURES)} wrong")
    sys.exit(bool(FAILURES))


if __name__ == "__main__":
    main()
