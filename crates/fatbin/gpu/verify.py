"""Compares what `warpcc fatbin check` predicts with what a driver does. See README.md."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = 'extern "C" __global__ void which(int *p) { *p = NUMBER; }\n'

# Images in the order they have in the container: TARGET, or TARGET@PTX_ISA to state another ISA.
# Every combination a 9.0 device can tell apart.
CONTAINERS = [
    "sm_90",
    "sm_90a",
    "sm_80",
    "sm_80 sm_86 sm_89",
    "sm_100",
    "sm_75 sm_80 sm_90",
    "compute_75",
    "compute_80",
    "compute_90",
    "compute_90a",
    "compute_100",
    "compute_100f",
    "sm_90 compute_90",
    "compute_90 sm_90",
    "sm_80 compute_80",
    "sm_80 compute_90",
    "sm_100 compute_100",
    "sm_100 compute_80",
    "sm_90 sm_90a",
    "sm_90a sm_90",
    "sm_90 sm_90",
    "sm_90a compute_90a",
    "compute_75 compute_80 compute_90",
    "compute_90 compute_80 compute_75",
    "compute_90 compute_90a",
    "compute_90a compute_90",
    "compute_80 compute_80",
    "compute_90@99.0",
    "compute_80 compute_90@99.0",
    "compute_90@99.0 compute_80",
    "sm_90 compute_90@99.0",
    "compute_100@99.0 compute_80",
]
VARIABLES = [
    {},
    {"CUDA_FORCE_PTX_JIT": "1"},
    {"CUDA_DISABLE_PTX_JIT": "1"},
    {"CUDA_FORCE_PTX_JIT": "1", "CUDA_DISABLE_PTX_JIT": "1"},
]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, arguments, folder):
        self.warpcc = str(pathlib.Path(arguments.warpcc).resolve())
        self.nvcc = arguments.nvcc
        self.folder = folder
        self.failures = 0
        self.loader = str(folder / "load")
        top = pathlib.Path(shutil.which(self.nvcc) or self.nvcc).resolve().parent.parent
        run(["gcc", "-O1", str(HERE / "load.c"), f"-I{top}/include",
             f"-I{top}/targets/x86_64-linux/include", "-o", self.loader, "-l:libcuda.so.1"])
        self.driver, self.gpu = run([self.loader]).split()

    def image(self, target, number):
        """Compiles one image whose kernel returns `number`."""
        name = self.folder / f"{target}-{number}"
        if not name.exists():
            source = self.folder / f"{target}-{number}.cu"
            source.write_text(SOURCE.replace("NUMBER", str(number)))
            arch = target.replace("sm_", "").replace("compute_", "")
            if target.startswith("sm_"):
                words = ["-cubin", f"-arch=sm_{arch}"]
            else:
                words = ["-ptx", f"-arch=compute_{arch}"]
            run([self.nvcc, *words, str(source), "-o", str(name)])
        return name

    def container(self, words):
        """A fat binary of these images. Its headers are written here, since fatbinary sorts images
        and refuses some; the layout is in docs/fatbin.md."""
        body = b""
        for number, word in enumerate(words.split(), 1):
            target, _, isa = word.partition("@")
            payload = self.image(target, number).read_bytes()
            kind = 2 if target.startswith("sm_") else 1
            arch = target.split("_")[1]
            flags = 0x11
            flags |= 0x100000 if arch.endswith("a") else 0x200000 if arch.endswith("f") else 0
            major, minor = 1, 8
            if kind == 1:
                text = payload.decode()
                version = next(l for l in text.splitlines() if l.startswith(".version"))
                major, minor = map(int, (isa or version.split()[1]).split("."))
                if isa:
                    payload = text.replace(version, f".version {isa}").encode()
                payload += b"\0"
            payload += b"\0" * (-len(payload) % 8)
            # A driver crashes on PTX without an options record: string offset, length, bytes.
            header = 64 + (16 if kind == 1 else 0)
            body += (0x01010000 | kind).to_bytes(4, "little")
            body += header.to_bytes(4, "little") + len(payload).to_bytes(8, "little")
            body += bytes(4) + (64 if kind == 1 else 0).to_bytes(4, "little")
            body += minor.to_bytes(2, "little") + major.to_bytes(2, "little")
            body += int(arch.rstrip("af")).to_bytes(4, "little") + bytes(8)
            body += flags.to_bytes(8, "little") + bytes(16)
            if kind == 1:
                body += (72).to_bytes(4, "little") + bytes(4) + bytes(8)
            body += payload
        file = self.folder / (words.replace(" ", "+") + ".fatbin")
        file.write_bytes(0xBA55ED50.to_bytes(4, "little") + (1).to_bytes(2, "little")
                         + (16).to_bytes(2, "little") + len(body).to_bytes(8, "little") + body)
        return file

    def predicted(self, file, variables):
        command = [self.warpcc, "fatbin", "check", "--json", "--gpu", self.gpu,
                   "--driver", self.driver, str(file)]
        if "CUDA_FORCE_PTX_JIT" in variables:
            command.append("--force-ptx-jit")
        if "CUDA_DISABLE_PTX_JIT" in variables:
            command.append("--disable-ptx-jit")
        done = subprocess.run(command, capture_output=True, text=True)
        verdicts = json.loads(done.stdout)
        if len(verdicts) != 1:
            sys.exit(f"{command}: {done.stdout}{done.stderr}")
        verdict = verdicts[0]
        if verdict["outcome"] == "fail":
            return f"fail {verdict['error']}"
        return f"{verdict['outcome']} image {verdict['image']}"

    def load(self, file, variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_FORCE")
                       and not k.startswith("CUDA_DISABLE")}
        environment.update(variables, CUDA_CACHE_DISABLE="1")
        done = subprocess.run([self.loader, str(file)], capture_output=True, text=True,
                              env=environment)
        if done.returncode:
            return "crash", done.returncode
        word, number = done.stdout.split()
        return word, int(number)

    def seen(self, file, variables):
        word, number = self.load(file, variables)
        if word == "error":
            return f"fail {number}"
        if word == "crash":
            return f"crash {number}"
        image = number - 1
        if "CUDA_FORCE_PTX_JIT" in variables:
            return f"jit image {image}"
        without, _ = self.load(file, {"CUDA_DISABLE_PTX_JIT": "1"})
        return f"{'run' if without == 'ran' else 'jit'} image {image}"

    def row(self, case, predicted, seen):
        agree = predicted == seen
        self.failures += not agree
        print(f"{case:<60} {predicted:<16} {seen:<16} {'' if agree else 'DIFFERS'}", flush=True)

    def thinned(self):
        """A library and a program, thinned to this GPU and to its PTX, must run; thinned to another
        GPU they must say 209's runtime error."""
        source = self.folder / "app.cu"
        source.write_text("""#include <cstdio>
__global__ void one(int *p) { *p += 1; }
__global__ void two(int *p) { *p += 41; }
extern "C" int answer() {
    int *p, result = 0;
    cudaMalloc(&p, 4); cudaMemset(p, 0, 4);
    one<<<1, 1>>>(p); two<<<1, 1>>>(p);
    if (cudaError_t e = cudaDeviceSynchronize()) return -(int)e;
    if (cudaError_t e = cudaGetLastError()) return -(int)e;
    cudaMemcpy(&result, p, 4, cudaMemcpyDeviceToHost);
    return result;
}
#ifndef LIBRARY
int main() { printf("%d\\n", answer()); }
#endif
""")
        number = self.gpu[3:]
        archs = ["-gencode", "arch=compute_80,code=sm_80", "-gencode",
                 f"arch=compute_{number},code=[sm_{number},compute_{number}]"]
        program, library = self.folder / "app", self.folder / "libapp.so"
        run([self.nvcc, *archs, str(source), "-o", str(program)])
        run([self.nvcc, *archs, "-rdc=true", str(source), "-o", str(program) + "-rdc"])
        run([self.nvcc, *archs, "-DLIBRARY", "-shared", "-Xcompiler", "-fPIC", str(source),
             "-o", str(library)])
        ask = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).answer())"
        for keep, expected in [(f"sm_{number}", "42"), (f"compute_{number}", "42"),
                               ("sm_80", "-209")]:
            for file in (program, pathlib.Path(str(program) + "-rdc"), library):
                out = self.folder / f"thin-{keep}-{file.name}"
                run([self.warpcc, "fatbin", "thin", "--keep", keep, str(file), "-o", str(out)])
                command = [sys.executable, "-c", ask, str(out)] if file == library else [str(out)]
                # Of relocatable code the runtime says "symbol not found".
                none = expected == "-209" and file.name.endswith("-rdc")
                done = subprocess.run(command, capture_output=True, text=True)
                self.row(f"{file.name} thinned to {keep}", "-500" if none else expected, done.stdout.strip()
                         or f"exit {done.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warpcc", required=True)
    parser.add_argument("--nvcc", default="nvcc")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        print(f"driver of CUDA {bench.driver}, {bench.gpu}")
        print(f"{'case':<60} {'predicted':<16} {'seen':<16}")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            images = {(word.partition("@")[0], number) for words in CONTAINERS
                      for number, word in enumerate(words.split(), 1)}
            list(pool.map(lambda image: bench.image(*image), sorted(images)))
        cases = [(words, bench.container(words), variables)
                 for words in CONTAINERS for variables in VARIABLES]
        # A driver takes about half a second to start: several at a time.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            predicted = pool.map(lambda case: bench.predicted(*case[1:]), cases)
            seen = pool.map(lambda case: bench.seen(*case[1:]), cases)
            for (words, _, variables), said, did in zip(cases, predicted, seen):
                names = (name.replace("CUDA_", "") for name in variables)
                bench.row(" ".join([words, *names]), said, did)
        for target in ("sm_90", "sm_80"):
            cubin = bench.image(target, 1).rename(bench.folder / f"{target}.cubin")
            for variables in VARIABLES[:2]:
                case = " ".join([f"{target}.cubin alone", *variables])
                seen = bench.load(cubin, variables)
                seen = "run image 0" if seen[0] == "ran" else f"fail {seen[1]}"
                bench.row(case, bench.predicted(cubin, variables), seen)
        bench.thinned()
        print(f"{bench.failures} differ")
        sys.exit(bench.failures > 0)


main()
