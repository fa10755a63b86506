"""The first start of an application: many kernels at once, in several processes, and from packs. No GPU. Run by tests/wheel.rs
with a folder to work in."""

import json
import os
import subprocess
import sys
import threading

import warpcc_rtc

FOLDER = os.path.join(sys.argv[1], "first_start")


def kernels(count=6):
    return [
        {
            "source": f"template<class T> __global__ void k(T* x) {{ *x = {number}; }}",
            "name": "k<float>",
            "arch": "sm_90",
            "options": ["--std=c++17"],
        }
        for number in range(count)
    ]


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise SystemExit(f"it was not refused: {kind}")


if len(sys.argv) > 2:
    # One of several processes that start together.
    cache = warpcc_rtc.KernelCache([sys.argv[2]], packs=[])
    sys.stdin.read()
    cache.compile_many(kernels())
    print(json.dumps(cache.counts))
    raise SystemExit(0)

os.makedirs(FOLDER)
cache = warpcc_rtc.KernelCache([os.path.join(FOLDER, "one")])
told = []
images = cache.compile_many(kernels(), progress=lambda *args: told.append((args, threading.get_ident())))
assert [args[0] for args, _ in told] == [1, 2, 3, 4, 5, 6] and {args[1] for args, _ in told} == {6}
assert {thread for _, thread in told} == {threading.get_ident()}
assert all(args[2] == "k<float>" and args[3].found == "made" and args[4] > 0 for args, _ in told)
for image, kernel in zip(images, kernels()):
    assert image.image == cache.compile(**kernel).image and image.lowered
assert cache.counts["made"] == 6

bad = kernels(2) + [{"source": "oops", "name": "bad", "arch": "sm_90", "file": "src/bad.cu"}]
error = refused(warpcc_rtc.CompileError, lambda: cache.compile_many(bad))
assert error.place.startswith("src/bad.cu:1: ") and "src/bad.cu(1): error" in error.log, (error.place, error.log)
assert "src/bad.cu:1: " in str(error)
mixed = cache.compile_many(bad, return_exceptions=True)
assert isinstance(mixed[2], warpcc_rtc.CompileError) and mixed[1].found == "memory"
for wrong in ([{"name": "k"}], [{"source": "", "name": "k", "nmaes": []}], [{"source": "", "name": "k", "arch": "90"}]):
    refused(warpcc_rtc.ArgumentError, lambda: cache.compile_many(wrong))
assert cache.compile_many([]) == []


def stop(*args):
    raise KeyError("enough")


refused(KeyError, lambda: cache.compile_many(kernels(), progress=stop))

# As many ranks start: each kernel is compiled once by all of them together.
shared = os.path.join(FOLDER, "shared")
command = [sys.executable, __file__, sys.argv[1], shared]
ranks = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
for rank in ranks:
    rank.stdin.close()
counts = [json.loads(rank.stdout.read()) for rank in ranks]
assert all(rank.wait() == 0 for rank in ranks)
assert sum(count["made"] for count in counts) == 6, counts
assert all(count["made"] + count["disk"] + count["memory"] == 6 for count in counts), counts

# A folder as an installed package's pack: found without importing the package, and nothing is written to it.
site = os.path.join(FOLDER, "site")
os.makedirs(os.path.join(site, "demo_kernels", "ours.warpcc-pack"))
os.makedirs(os.path.join(site, "demo_kernels-1.dist-info"))
packed = os.path.join(site, "demo_kernels", "ours.warpcc-pack")
warpcc_rtc.KernelCache([packed], packs=[]).compile_many(kernels())
with open(os.path.join(site, "demo_kernels", "__init__.py"), "w") as file:
    file.write("raise SystemExit('it was imported')\n")
with open(os.path.join(site, "demo_kernels-1.dist-info", "METADATA"), "w") as file:
    file.write("Metadata-Version: 2.1\nName: demo-kernels\nVersion: 1\n")
with open(os.path.join(site, "demo_kernels-1.dist-info", "entry_points.txt"), "w") as file:
    file.write("[warpcc_rtc.packs]\nours = demo_kernels\nnone = no_such_package\nbroken = json:no_such_name\n")
program = f"""
import json, sys, warpcc_rtc
cache = warpcc_rtc.KernelCache([{os.path.join(FOLDER, 'empty')!r}])
image = cache.compile(**json.loads(sys.argv[1]))
print(json.dumps([image.found, cache.remarks]))
"""
paths = os.pathsep.join([site, os.environ.get("PYTHONPATH", "")])
command = [sys.executable, "-c", program, json.dumps(kernels()[3])]
found, remarks = json.loads(subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, stdout=subprocess.PIPE).stdout)
assert found == "disk" and len(remarks) == 2, (found, remarks)
assert any("no_such_package" in remark for remark in remarks) and any("no_such_name" in remark for remark in remarks), remarks

# Code of other packages may open a cache while it is asked for packs, may want to exit, and may raise errors without a text.
rude = os.path.join(FOLDER, "rude")
os.makedirs(os.path.join(rude, "rude-1.dist-info"))
with open(os.path.join(rude, "rude.py"), "w") as file:
    file.write(f"""
import warpcc_rtc

class Odd(Exception):
    def __str__(self):
        raise ValueError

def odd():
    raise Odd

def leaves():
    raise SystemExit(7)

cache = warpcc_rtc.KernelCache([])
PACKS = [{packed!r}]
""")
with open(os.path.join(rude, "rude-1.dist-info", "METADATA"), "w") as file:
    file.write("Metadata-Version: 2.1\nName: rude\nVersion: 1\n")
with open(os.path.join(rude, "rude-1.dist-info", "entry_points.txt"), "w") as file:
    file.write("[warpcc_rtc.packs]\na = rude:leaves\nb = rude:odd\nc = rude:PACKS\n")
paths = os.pathsep.join([rude, os.environ.get("PYTHONPATH", "")])
command[-1] = json.dumps(kernels()[4])
done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, stdout=subprocess.PIPE, timeout=120)
found, remarks = json.loads(done.stdout)
assert found == "disk" and len(remarks) == 2 and "SystemExit" in remarks[0] and "Odd" in remarks[1], remarks

# A damaged pack is a miss and a remark.
damaged = os.path.join(FOLDER, "damaged.warpcc-pack")
with open(damaged, "w") as file:
    file.write("warpcc-pack 1\nand then nothing")
cache = warpcc_rtc.KernelCache([os.path.join(FOLDER, "two")], packs=[damaged])
assert cache.compile(**kernels()[0]).found == "made"
assert len(cache.remarks) == 1 and "damaged.warpcc-pack" in cache.remarks[0], cache.remarks
