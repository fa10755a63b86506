"""A project of several files, cold, on two processors alone and with workers of two processors each, on a machine of many.

`cargo xtask bench --only cluster` makes do with shares of two processors; where there are sixteen, every machine of the
cluster gets processors of its own (taskset): the user's, each worker's, and those of the servers between them. Needs no
cargo and no network:

    python3 xtask/bench/cluster_pinned.py --ggml GGML --include CUBLAS --warpcc WARPCC --dispatcher DISPATCHER
        --casd FOLDER --out OUT.json [--workers 0,1,2,4,6] [--processors 2] [--archs 80,86,90] [FILE ...]

GGML is llama.cpp's folder `ggml`; DISPATCHER the example of crates/remote; FOLDER holds buildbox-casd and buildbox-run.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

FILES = "clamp fill scale sum softmax pad arange concat diagmask tsembd wkv norm".split()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"nobody listens on port {port}")


def on(processors, command):
    return ["taskset", "-c", processors, *map(str, command)]


class Cluster:
    """A casd that keeps, workers that execute, and the dispatcher before them."""

    def __init__(self, options, folder, workers, processors, between):
        self.running = []
        self.front = self.casd(options, f"{folder}/front", between, None, 1)
        ports = [
            self.casd(options, f"{folder}/{number}", where, self.front, options.processors)
            for number, where in enumerate(processors[:workers])
        ]
        self.port = free_port()
        addresses = [f"grpc://127.0.0.1:{port}" for port in (self.front, *ports)]
        self.dispatcher = subprocess.Popen(
            on(between, [options.dispatcher, self.port, 0, *addresses]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        wait_for(self.port)

    def casd(self, options, folder, processors, front, jobs):
        os.makedirs(folder)
        port = free_port()
        command = [
            f"{options.casd}/buildbox-casd", f"--bind=127.0.0.1:{port}", "--quota-high=8G", "--reserved=64M", f"--jobs={jobs}",
            "--cache-failures=false", "--log-level=error", f"--buildbox-run={options.casd}/buildbox-run",
            "--runner-arg=--staging-mode=copy-or-link",
        ]
        for source, target in (("/usr", "/usr"), ("/usr/lib", "/lib"), ("/usr/lib64", "/lib64"), ("/usr/bin", "/bin")):
            command.append(f"--runner-arg=--ro-bind-mount={source}:{target}")
        if front:
            command += [f"--cas-remote=http://127.0.0.1:{front}", f"--ac-remote=http://127.0.0.1:{front}"]
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            self.running.append(subprocess.Popen(on(processors, [*command, f"{folder}/store"]), stdout=log, stderr=log))
        wait_for(port)
        return port

    def stop(self):
        """How many actions each worker was given."""
        self.dispatcher.stdin.close()
        said = self.dispatcher.stdout.read()
        self.dispatcher.wait()
        for each in self.running:
            each.kill()
            each.wait()
        return [int(word) for word in said.split()]


def main():
    parser = argparse.ArgumentParser()
    for name in ("ggml", "include", "warpcc", "dispatcher", "casd", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--workers", default="0,1,2,4,6")
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--archs", default="80,86,90")
    parser.add_argument("--nvcc", default=shutil.which("nvcc"))
    parser.add_argument("files", nargs="*", default=FILES)
    options = parser.parse_args()
    for name in ("ggml", "include", "warpcc", "dispatcher", "casd", "nvcc"):
        setattr(options, name, os.path.abspath(getattr(options, name)))
    each = options.processors
    sets = [f"{first}-{first + each - 1}" for first in range(0, os.cpu_count() - each + 1, each)]
    # The last set is the servers' between.
    here, between, processors = sets[0], sets[-1], sets[1:-1]
    archs = " ".join(f"-gencode arch=compute_{arch},code=sm_{arch}" for arch in options.archs.split(","))
    ggml = options.ggml
    flags = (
        f"-std=c++17 -O3 -use_fast_math -extended-lambda -compress-mode=size {archs} -I{ggml}/include -I{ggml}/src "
        f"-I{ggml}/src/ggml-cuda -I{options.include} -DGGML_CUDA_PEER_MAX_BATCH_SIZE=128 -DNDEBUG -Xcompiler=-fPIC"
    )
    rows, reference = [], None
    for workers in map(int, options.workers.split(",")):
        if workers > len(processors):
            print(f"{workers} workers: {os.cpu_count()} processors are too few")
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/build")
            lines = [f"rule cu\n command = {options.warpcc} {options.nvcc} {flags} -c $in -o $out\n"]
            lines += [f"build {file}.o: cu {ggml}/src/ggml-cuda/{file}.cu\n" for file in options.files]
            with open(f"{folder}/build/build.ninja", "w", encoding="utf-8") as file:
                file.write("".join(lines))
            environment = {
                **os.environ, "WARPCC_RUNTIME_DIR": f"{folder}/runtime", "WARPCC_CONFIG": "/dev/null",
                "WARPCC_JOBS": str(each), "WARPCC_REMOTE": "none",
            }
            cluster = None
            if workers:
                cluster = Cluster(options, folder, workers, processors, between)
                environment |= {
                    "WARPCC_EXECUTOR": f"grpc://127.0.0.1:{cluster.port}", "WARPCC_EXECUTOR_ALWAYS": "1",
                    "WARPCC_EXECUTOR_JOBS": str(4 * each * workers),
                }
                # The toolchain travels before the clock runs: once for a cluster, not once for a build.
                for number in range(2 * each * workers):
                    with open(f"{folder}/warm{number}.cu", "w", encoding="utf-8") as file:
                        file.write(f"__global__ void k{number}() {{}}\n")
                    warm = [options.warpcc, options.nvcc, "-c", f"warm{number}.cu", "-o", "warm.o", "-arch=sm_80"]
                    warm += ["-gencode=arch=compute_90,code=sm_90"] * (number % 2)
                    subprocess.run(warm, check=True, cwd=folder, env=environment | {"WARPCC_DIR": f"{folder}/toolchain"})
            environment |= {"WARPCC_DIR": f"{folder}/cache", "WARPCC_BUILD_ID": "measured"}
            begun, before = time.perf_counter(), os.times()
            ninja = ["ninja", "-j", str(len(options.files)), "-C", f"{folder}/build"]
            done = subprocess.run(on(here, ninja), env=environment, capture_output=True, text=True, check=False)
            wall, after = time.perf_counter() - begun, os.times()
            if done.returncode:
                raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
            ask = lambda *words: json.loads(subprocess.run([options.warpcc, *words], env=environment, capture_output=True, check=True).stdout)
            stats = ask("stats", "--json").get("remote", {})
            report = ask("report", "--json", "--build", "measured")
            tasks = [task for call in report["calls"] for task in call["tasks"]]
            objects = {}
            for file in options.files:
                with open(f"{folder}/build/{file}.o", "rb") as made:
                    objects[file] = made.read()
            reference = reference or objects
            rows.append({
                "workers": workers, "wall_s": wall,
                "cpu_s_of_the_users_machine": after.children_user + after.children_system - before.children_user - before.children_system,
                "steps": len(tasks), "executed_by_workers": stats.get("executed", 0), "errors": stats.get("errors", 0),
                "bytes_up": stats.get("bytes_up", 0), "bytes_down": stats.get("bytes_down", 0),
                "actions_of_each_worker": cluster.stop() if cluster else [], "objects_equal": objects == reference,
            })
            print(json.dumps(rows[-1]), flush=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({
            "name": "cluster-pinned", "processors_of_each_machine": each, "files": options.files, "architectures": options.archs,
            "processors": os.cpu_count(), "runs": rows,
        }, file, indent=1)
    if not all(row["objects_equal"] for row in rows):
        raise SystemExit("the objects are not those of the first run")


if __name__ == "__main__":
    main()
