"""CuPy, cuda.core and Numba-CUDA as PyPI has them, with this package's cache and without: the same bytes, compiled once. No GPU.
Run by tests/adapters/mod.rs as `adapters.py STEP CACHE FOLDER`, each step in a process of its own; it prints JSON."""

import hashlib
import json
import os
import site
import sys

# With its .pth files: numba-cuda takes numba.cuda over by one.
site.addsitedir(os.environ["WARPCC_TEST_ADAPTERS"])

STEP, CACHE, FOLDER = sys.argv[1:]
os.chdir(FOLDER)
if CACHE != "-":
    os.environ["WARPCC_RTC_CACHE"] = CACHE
HEADER = os.path.join(FOLDER, "factor.h")
SOURCE = '#include "factor.h"\ntemplate<class T> __global__ void k(T* x) { *x *= FACTOR; }\n'
told = {}


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def counted(*caches):
    counts = [cache.counts for cache in caches]
    told["made"] = sum(count["made"] for count in counts)
    told["found"] = sum(count["disk"] for count in counts)
    told["remarks"] = [remark for cache in caches for remark in cache.remarks]


def cupy_step():
    from cupy.cuda import compiler

    class Module:
        """What CuPy loads onto a GPU."""

        def load(self, image):
            told.setdefault("images", []).append(digest(image))

        def _set_mapping(self, mapping):
            self.mapping = told.setdefault("names", mapping)

    # The questions to a GPU, answered.
    compiler._get_arch = lambda: "90"
    compiler._get_arch_for_options_for_nvrtc = lambda arch=None: ("-arch=sm_90", "cubin")
    compiler.function = type(sys)("function")
    compiler.function.Module = Module
    if CACHE != "-":
        import warpcc_rtc.cupy

        warpcc_rtc.cupy.install()
        warpcc_rtc.cupy.install()
    options = ("--std=c++17", "-I" + FOLDER)
    compiler._compile_module_with_cache(SOURCE, options, name_expressions=("k<float>", "k<int>"))
    # What RawKernel and ElementwiseKernel do, without names.
    compiler._compile_module_with_cache('extern "C" __global__ void l(int* x) { *x = 1; }', ())
    try:
        compiler._compile_module_with_cache("oops", ())
        raise SystemExit("it compiled")
    except compiler.CompileException as error:
        told["error"] = str(error)
    if CACHE != "-":
        counted(warpcc_rtc.default_cache())
        warpcc_rtc.cupy.uninstall()
        assert compiler._compile_using_nvrtc_no_warning.__module__ == "cupy.cuda.compiler"


def cuda_core_step():
    from cuda.core import Program, ProgramOptions

    plain = 'extern "C" __global__ void l(int* x) { *x = 1; }'
    options = ProgramOptions(arch="sm_90")
    headers = ProgramOptions(arch="sm_90", include_path=[FOLDER])
    if CACHE == "-":
        one = Program(plain, "c++", options).compile("cubin")
        two = Program(SOURCE, "c++", headers).compile("cubin", name_expressions=("k<float>",))
    else:
        import warpcc_rtc
        import warpcc_rtc.cuda_core
        from cuda.core.utils import ProgramCacheResource

        with warpcc_rtc.cuda_core.ProgramCache() as cache:
            assert isinstance(cache, ProgramCacheResource)
            one = Program(plain, "c++", options).compile("cubin", cache=cache)
            assert len(cache) == 1
        two = warpcc_rtc.cuda_core.compile(SOURCE, "cubin", headers, ("k<float>",))
        counted(cache.cache, warpcc_rtc.default_cache())
        mapping(warpcc_rtc.cuda_core.ProgramCache(warpcc_rtc.KernelCache([os.path.join(FOLDER, "mapping")])))
    told["images"] = [digest(bytes(one.code)), digest(bytes(two.code))]
    told["names"] = {str(name): lowered.decode() for name, lowered in two.symbol_mapping.items()}


def mapping(cache):
    """What the base class says of every cache."""
    cache.clear()
    cache["a"] = b"1"
    assert cache[b"a"] == b"1" and cache.get("a") == b"1" and cache.get("b") is None and len(cache) == 1
    cache.update({"a": bytearray(b"2"), b"b": memoryview(b"3")})
    assert cache["a"] == b"2" and cache["b"] == b"3" and len(cache) == 2
    del cache["a"]
    for gone in (lambda: cache["a"], lambda: cache.__delitem__("a")):
        try:
            gone()
            raise SystemExit("it was there")
        except KeyError:
            pass
    for wrong in (lambda: cache[1], lambda: cache.__setitem__("a", "text"), lambda: cache.__setitem__(2, b"")):
        try:
            wrong()
            raise SystemExit("it was taken")
        except TypeError:
            pass
    cache.clear()
    assert len(cache) == 0 and cache.get("b") is None


def numba_step():
    from numba import cuda, types
    from numba.cuda.cudadrv import driver

    if CACHE != "-":
        import warpcc_rtc.numba

        warpcc_rtc.numba.install()

    def scale(x, by):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= by

    ptx, _ = cuda.compile(scale, (types.float32[:], types.float32), cc=(9, 0))
    told["images"] = [digest(ptx)]
    linker = driver._Linker(cc=(9, 0))
    linker.add_ptx(ptx.encode())
    told["images"].append(digest(bytes(linker.complete().code)))
    # LTO-IR, since for PTX cuda.core asks the driver for its version.
    linker = driver._Linker(cc=(9, 0), lto=True)
    linker.add_cu('extern "C" __global__ void l(int* x) { *x = 1; }', "l.cu")
    told["images"].append(digest(bytes(linker.complete().code)))
    told["log"] = linker.info_log
    if CACHE != "-":
        counted(warpcc_rtc.default_cache())
        warpcc_rtc.numba.uninstall()


{"cupy": cupy_step, "cuda.core": cuda_core_step, "numba": numba_step}[STEP]()
print(json.dumps(told))
