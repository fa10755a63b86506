"""An application with kernels of its own and ready-made ones: asks for each, and prints how many were compiled. With a stand-in
for the driver. Run by tests/wheel.rs, with the cache that the environment names."""

import json
import os

import numpy

import warpcc_rtc

os.environ["FAKE_PARAMETERS"] = "8"


class Array:
    """An array on a GPU by its description alone."""

    def __init__(self, address, shape=(64, 32), typestr="<f4"):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "data": (address, False), "version": 3}


def at(place, **how):
    return Array(0x7F0000000000 + place * 0x100000, **how)


half, out = at(0, typestr="<f2"), at(1)
warpcc_rtc.unary("gelu", half, out)
warpcc_rtc.binary("add", half, 2.5, out, add=True)
warpcc_rtc.fused("relu(a * x + b)", a=2.0, x=half, b=at(2, shape=(32,)), out=out)
warpcc_rtc.reduce("sum", half, axis=0, out=at(3, shape=(32,)))
# Text that a manifest must give back byte by byte.
own = "// '''' \"quoted\" \\ \t \u00e9\r\n#include \"n.h\"\ntemplate<class T> __global__ void own(T* x) { *x = N + M; }\n"
cache = warpcc_rtc.KernelCache(headers={"n.h": "#define N 3\n"}, preamble={"m.h": "#define M 4"}, options=["-DQ='\"'"])
cache.get_function("// parameters", "own<float>", own)
ptx = cache.compile(own, "own<int>", "compute_90").image
cache.load_ptx(ptx, "sm_90")

everything = [warpcc_rtc.default_cache(), cache]
counts = {name: sum(each.counts[name] for each in everything) for name in everything[0].counts}
print(json.dumps({"counts": counts, "remarks": [remark for each in everything for remark in each.remarks]}))
