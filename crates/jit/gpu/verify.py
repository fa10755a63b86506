"""Checks `warpcc jit warm`, `prove` and `cache` against a real driver. See README.md."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

# Enough to compile that a cache is worth it, in about a second.
SOURCE = r"""
#include <cstdio>
#include <cmath>
template <int N> __global__ void work(float *p) {
    float x = p[0];
#pragma unroll
    for (int i = 0; i < 60; i++) x = sinf(x) + erff(x + i) * p[i & 7] * N;
    p[1] = x;
    if (x == 12345.f) p[2] = x;
    p[0] = 41 + N;
}
extern "C" int answer() {
    float *p, result = 0;
    if (cudaMalloc(&p, 64)) return -1;
    cudaMemset(p, 0, 64);
    work<1><<<1, 1>>>(p);
    if (cudaError_t e = cudaDeviceSynchronize()) return -(int)e;
    if (cudaError_t e = cudaGetLastError()) return -(int)e;
    cudaMemcpy(&result, p, 4, cudaMemcpyDeviceToHost);
    return (int)result;
}
#ifndef LIBRARY
int main() { printf("%d\n", answer()); }
#endif
"""


class Bench:
    def __init__(self, arguments, folder):
        self.warpcc = str(pathlib.Path(arguments.warpcc).resolve())
        self.nvcc = shutil.which(arguments.nvcc) or arguments.nvcc
        self.folder = folder
        self.failures = 0

    def environment(self, cache, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
        return {**kept, "CUDA_CACHE_PATH": str(cache), "WARPCC_NVCC": self.nvcc, **more}

    def build(self, *words):
        done = subprocess.run([self.nvcc, *words], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"nvcc {words}\n{done.stdout}{done.stderr}")

    def jit(self, cache, *words, **more):
        """Exit code, JSON and both streams of a command of warpcc jit."""
        done = subprocess.run([self.warpcc, "jit", *map(str, words), "--json"], cwd=self.folder,
                              env=self.environment(cache, **more), capture_output=True, text=True)
        try:
            value = json.loads(done.stdout)
        except ValueError:
            value = {}
        return done.returncode, value, done.stdout + done.stderr

    def app(self, cache, name="./app", **more):
        """What the program prints, and its seconds."""
        command = [name]
        if name.endswith(".so"):
            ask = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).answer())"
            command = [sys.executable, "-c", ask, name]
        start = time.time()
        done = subprocess.run(command, cwd=self.folder, env=self.environment(cache, **more),
                              capture_output=True, text=True, timeout=300)
        return done.stdout.strip() or f"exit {done.returncode}", time.time() - start

    def row(self, case, expected, seen):
        agree = str(expected) == str(seen)
        self.failures += not agree
        print(f"{case:<66} {expected!s:<12} {seen!s:<12} {'' if agree else 'DIFFERS'}", flush=True)

    def tell(self, text):
        print("    " + text, flush=True)


def entries(cache):
    files = [p for p in pathlib.Path(cache).rglob("*") if p.is_file() and p.name != "index"]
    return {str(p.relative_to(cache)): p.stat().st_size for p in files}


def warming(bench, by):
    """Warms by one way of loading; whether the program then starts without compiling."""
    cache = bench.folder / f"cache-{by}"
    off = {"CUDA_DISABLE_PTX_JIT": "1"}
    empty, _ = bench.app(cache, **off)
    bench.row("app, empty cache, compiling switched off: fails", True, empty != "42")
    code, warmed, said = bench.jit(cache, "warm", "app", "lib.so", "--by", by)
    bench.row(f"warm --by {by}: exit code", 0, code)
    if code:
        bench.tell(said[-1500:])
    modules = warmed.get("modules", [])
    bench.row(f"warm --by {by}: modules", 2, len(modules))
    for module in modules:
        first, second = module["first_seconds"] or 0, module["second_seconds"] or 0
        bench.tell(f"{module['file']}: first {first:.3f} s, second {second:.3f} s, "
                   f"kept {module['kept']}, {module['trouble']}")
        bench.row("  the second load takes less than half", True, second < first / 2)
        bench.row("  kept", True, module["kept"])
    bench.row("  the cache grew", True,
              bool(warmed) and warmed["after"]["bytes"] > warmed["before"]["bytes"])
    bench.tell(f"entries: {entries(cache)}")
    answers = [bench.app(cache, name, **off, **mode)[0] for name in ("./app", "./lib.so")
               for mode in ({}, {"CUDA_MODULE_LOADING": "EAGER"})]
    return cache, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warpcc", required=True)
    parser.add_argument("--nvcc", default="nvcc")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bench = Bench(arguments, folder)
        (folder / "a.cu").write_text(SOURCE)
        old = ["-gencode", "arch=compute_80,code=compute_80"]
        bench.build("a.cu", *old, "-o", "app")
        bench.build("a.cu", *old, "-DLIBRARY", "-shared", "-Xcompiler", "-fPIC", "-O1", "-o", "lib.so",
                    "-Xptxas", "-O2")
        print(f"{'case':<66} {'expected':<12} {'seen':<12}")

        # What it will be, by ptxas.
        code, advice, said = bench.jit(folder / "cache-none", "advise", "app", "--gpu", "sm_90")
        bench.row("advise: texts that are compiled", 1, advice.get("gpus", [{}])[0].get("texts"))
        if advice:
            on = advice["gpus"][0]
            bench.tell(f"ptxas: {on['seconds']:.2f} s, {on['cubin_bytes']} bytes; cache on "
                       f"{advice['cache']['folder']['file_system']}")

        # The program then starts without compiling.
        cache, answers = warming(bench, "module")
        bench.row("app and library, lazy and eager, compiling switched off", ["42"] * 4, answers)
        if answers != ["42"] * 4:
            bench.tell("loaded as a library instead:")
            cache, answers = warming(bench, "library")
            bench.row("the same with --by library", ["42"] * 4, answers)

        # The entries of the program itself.
        own = folder / "cache-own"
        cold, cold_time = bench.app(own)
        warm, warm_time = bench.app(own)
        bench.row("app with a cache of its own", ["42", "42"], [cold, warm])
        bench.tell(f"the program: cold {cold_time:.2f} s, warm {warm_time:.2f} s")
        mine, theirs = entries(cache), entries(own)
        bench.row("the app's entry is one that warm made", True, bool(theirs) and set(theirs) <= set(mine))
        bench.tell(f"its own entries: {theirs}")
        code, warmed, _ = bench.jit(own, "warm", "app")
        bench.row("warm after the app: nothing new", sorted(theirs), sorted(entries(own)))
        bench.tell(f"and loads in {[m['first_seconds'] for m in warmed.get('modules', [])]} s")

        # What is in the cache, and clearing it.
        code, view, _ = bench.jit(cache, "cache")
        bench.row("cache: has the driver's layout", True, view["held"]["is_cache"])
        bench.row("cache: files", len(mine), view["held"]["files"])
        code, cleared, said = bench.jit(cache, "cache", "--clear")
        bench.row("cache --clear: exit code", 0, code)
        bench.row("cache --clear: nothing is left", {}, entries(cache))
        answer, _ = bench.app(cache, CUDA_DISABLE_PTX_JIT="1")
        bench.row("app after that, compiling switched off: fails", True, answer != "42")
        answer, _ = bench.app(cache)
        bench.row("app after that", "42", answer)

        # A cache that is too small keeps nothing, and warm says so.
        code, warmed, _ = bench.jit(folder / "cache-small", "warm", "app", CUDA_CACHE_MAXSIZE="1000")
        bench.row("warm, CUDA_CACHE_MAXSIZE=1000: exit code", 1, code)
        bench.row("  kept", [False], [m["kept"] for m in warmed.get("modules", [])])
        deep = folder / "not/there/yet"
        code, _, _ = bench.jit(deep, "warm", "app")
        bench.row("warm into a folder that is not there: exit code", 0, code)

        # PTX that works, and PTX that does not.
        code, proof, said = bench.jit(own, "prove", "app", "lib.so", "--load")
        bench.row("prove --load: exit code", 0, code)
        if code:
            bench.tell(said[-1500:])
        bench.row("  compiled by the driver", proof.get("different"),
                  (proof.get("driver") or {}).get("compiled"))
        bench.build("-ptx", "a.cu", "-arch=compute_80", "-o", "good.ptx")
        text = (folder / "good.ptx").read_text()
        (folder / "bad.ptx").write_text(text.replace("\tst.global.f32", "\tzap.global.f32", 1))
        fatbinary = str(pathlib.Path(bench.nvcc).resolve().with_name("fatbinary"))
        for word in ("good", "bad"):
            subprocess.run([fatbinary, "-64", f"--create={word}.fatbin", "--compress-mode=none",
                            f"--image3=kind=ptx,sm=80,file={word}.ptx"], cwd=folder, check=True)
        code, proof, said = bench.jit(own, "prove", "bad.fatbin", "--load", "--gpu", "sm_90")
        bench.row("prove --load of broken PTX: exit code", 1, code)
        failures = proof.get("failures", [])
        bench.row("  refused by ptxas and by the driver", 2, len(failures))
        bench.row("  with its kernel", True, all("work" in str(f["complaints"]) for f in failures))
        for failure in failures:
            bench.tell(f"{failure['by']}: {[c['text'] for c in failure['complaints']]}")

        # A container that crashes a driver (PTX without an options record) between two good ones.
        good = (folder / "good.fatbin").read_bytes()
        crash = bytearray(good)
        crash[16 + 0x14:16 + 0x18] = bytes(4)
        (folder / "mixed.fatbin").write_bytes(good + bytes(crash) + good)
        code, warmed, said = bench.jit(folder / "cache-mixed", "warm", "mixed.fatbin")
        bench.row("warm with a container that crashes the driver: exit code", 1, code)
        kept = [m["kept"] for m in warmed.get("modules", [])]
        bench.row("  the others are kept", [True, True], kept[:1] + kept[2:])
        bench.tell(f"{[m['trouble'] for m in warmed.get('modules', [])]}")

        # Relocatable code that the runtime links anew: inferred, so only told.
        bench.build("a.cu", "-rdc=true", "-gencode", "arch=compute_80,code=[sm_80,compute_80]",
                    "-o", "linked")
        code, warmed, _ = bench.jit(folder / "cache-link", "warm", "linked")
        answer, _ = bench.app(folder / "cache-link", "./linked")
        bench.tell(f"linked program: predicted JIT links {warmed.get('jit_link')}, fail "
                   f"{warmed.get('fail')}; warm's exit code {code}; the program says {answer}")
        again, _ = bench.app(folder / "cache-link", "./linked", CUDA_DISABLE_PTX_JIT="1")
        bench.tell(f"and then with compiling switched off: {again}; "
                   f"{len(entries(folder / 'cache-link'))} entries")

        print(f"{bench.failures} differ")
        sys.exit(bench.failures > 0)


main()
