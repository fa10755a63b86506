"""How long many kernels take with an empty cache: one after another, in threads, in processes.

    python3 many.py OUT.json [--kernels 100] [--repeat 3] [--threads 4,8,16] [--arch sm_90] [--nvrtc PATH] [--memory] [--sizes small,larger]

Needs the wheel and NVRTC; no GPU. Each measurement is a new process of Python, with a folder of its own. It prints a table, and
compares all images with those that were compiled one after another. Exit code: 0 if they are equal. crates/kernels/gpu/run.sh
starts this.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

SMALL = "template<class T> __global__ void k(T* x) { *x = NUMBER; }"

LARGER = """
template<class T> __global__ void k(T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  T v = i < n ? x[i] : 0;
  #pragma unroll
  for (int j = 0; j < 32; j++) v = sinf(v) * NUMBER + cosf(v * j) + expf(-v * v);
  if (i < n) x[i] = v;
}
"""

MEASURED = """
import hashlib, glob, json, os, resource, sys, time
begin = time.perf_counter()
import warpcc_rtc
import_time = time.perf_counter() - begin
folder, how, threads, text, count, arch, nvrtc = json.loads(sys.argv[1])
kernels = [{"source": text, "name": "k<float>", "arch": arch, "parameters": f"#define NUMBER {number}"} for number in range(count)]
cache = warpcc_rtc.KernelCache([folder] if folder else [], remote="none", packs=[], **({"nvrtc": nvrtc} if nvrtc else {}))
cache.nvrtc_version
children = set()

def seen(*_):
    for path in glob.glob("/proc/self/task/*/children"):
        try:
            with open(path) as file:
                children.update(file.read().split())
        except OSError:
            pass

def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)

before = cpu()
begin = time.perf_counter()
if how == "serial":
    images = [cache.compile(**kernel) for kernel in kernels]
else:
    images = cache.compile_many(kernels, threads=threads, progress=seen, processes=how == "processes")
seconds = time.perf_counter() - begin
digest = hashlib.sha256(b"".join(image.image + image.log.encode() for image in images)).hexdigest()
print(json.dumps({"seconds": seconds, "cpu": cpu() - before, "started": len(children), "digest": digest, "remarks": cache.remarks,
                  "counts": cache.counts, "nvrtc": cache.nvrtc_version, "import": import_time}))
"""


def measured(options, how, threads, text):
    runs = []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            told = [None if options.memory else folder, how, threads, text, options.kernels, options.arch, options.nvrtc]
            done = subprocess.run([sys.executable, "-c", MEASURED, json.dumps(told)], stdout=subprocess.PIPE, check=True)
            runs.append(json.loads(done.stdout))
    runs.sort(key=lambda run: run["seconds"])
    middle = runs[len(runs) // 2]
    middle["all_seconds"] = [round(run["seconds"], 3) for run in runs]
    middle["cpu"] = statistics.median(run["cpu"] for run in runs)
    return middle


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", help="how many threads; 0 for as many as the machine has processors")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--nvrtc")
    parser.add_argument("--memory", action="store_true", help="keep the results in memory only, to see what the folder costs")
    parser.add_argument("--sizes", default="small", help="small,larger; a larger kernel takes almost a second")
    options = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    counts = [int(one) for one in options.threads.split(",")] if options.threads else sorted({2, 4, 8, processors})
    counts = [count for count in counts if count <= processors]
    rows, equal = [], True
    print(f"{options.kernels} kernels, {processors} processors; seconds are medians of {options.repeat}")
    for size in options.sizes.split(","):
        text = {"small": SMALL, "larger": LARGER}[size]
        serial = measured(options, "serial", 1, text)
        plans = [("serial", 1, serial)]
        plans += [(how, count, None) for how in ("threads", "processes") for count in counts]
        print(f"\n{size} kernels, NVRTC {serial['nvrtc']}")
        print(f"{'how':<10} {'threads':>7} {'processes':>9} {'s':>8} {'faster':>7} {'CPU s':>7}")
        for how, count, run in plans:
            run = run or measured(options, how, count, text)
            same = run["digest"] == serial["digest"] and not run["remarks"] and run["counts"]["made"] == options.kernels
            equal = equal and same
            rows.append({"size": size, "how": how, "threads": count, "processors": processors, **run})
            faster = serial["seconds"] / run["seconds"]
            print(f"{how:<10} {count:>7} {run['started']:>9} {run['seconds']:>8.3f} {faster:>6.1f}x {run['cpu']:>7.2f}"
                  + ("" if same else f"  DIFFERENT: {run['remarks']} {run['counts']}"), flush=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
