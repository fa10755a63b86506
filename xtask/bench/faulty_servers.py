"""What servers that fail cost a build: cold builds of a few files with a shared cache or a cluster that is not there, never
answers, gives a byte a second or answers 500, against the same build with none.

    python3 xtask/bench/faulty_servers.py --warpcc WARPCC --nvcc NVCC --out OUT.json [--rounds 3] [--files 4]

Every build begins with an empty cache, so that the first call meets the server and the others find it left alone.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time

SOURCE = "#include <vector>\n#include <map>\n#include <string>\n__global__ void k{0}(float *x) {{ x[threadIdx.x] *= {0}; }}\n" \
         "int f{0}() {{ std::map<std::string, std::vector<int>> m; m[\"a\"].push_back({0}); return m.size(); }}\n"


def serve(answer):
    """A server on a free port that does `answer` with each connection."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)

    def accept():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listening.getsockname()[1]


def silent(connection):
    time.sleep(600)
    connection.close()


def slow(connection):
    try:
        connection.recv(65536)
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 600:
            connection.send(bytes([byte]))
            time.sleep(1)
    except OSError:
        pass


def broken(connection):
    try:
        while connection.recv(1 << 20):
            connection.send(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
    except OSError:
        pass


def main():
    parser = argparse.ArgumentParser()
    for name in ("warpcc", "nvcc", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=4)
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nobody = gone.getsockname()[1]
    black, byte, wrong = serve(silent), serve(slow), serve(broken)
    builds = {
        "no server": {},
        "HTTP cache, nobody there": {"WARPCC_REMOTE": f"http://127.0.0.1:{nobody}/"},
        "HTTP cache, never answers": {"WARPCC_REMOTE": f"http://127.0.0.1:{black}/"},
        "HTTP cache, a byte a second": {"WARPCC_REMOTE": f"http://127.0.0.1:{byte}/"},
        "HTTP cache, answers 500": {"WARPCC_REMOTE": f"http://127.0.0.1:{wrong}/"},
        "gRPC cache, never answers": {"WARPCC_REMOTE": f"grpc://127.0.0.1:{black}"},
        "cluster, nobody there": {"WARPCC_EXECUTOR": f"grpc://127.0.0.1:{nobody}", "WARPCC_EXECUTOR_ALWAYS": "1"},
        "cluster, never answers": {"WARPCC_EXECUTOR": f"grpc://127.0.0.1:{black}", "WARPCC_EXECUTOR_ALWAYS": "1"},
    }
    times, objects = {what: [] for what in builds}, {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.files):
            with open(f"{folder}/f{number}.cu", "w", encoding="utf-8") as file:
                file.write(SOURCE.format(number))
        # The toolkit's hashes and the disk's cache: not what is measured.
        for round_ in range(-1, options.rounds):
            for what, servers in builds.items():
                cache = f"{folder}/cache"
                environment = {**os.environ, "WARPCC_DIR": cache, "WARPCC_RUNTIME_DIR": f"{folder}/runtime",
                               "WARPCC_CONFIG": "/dev/null", "WARPCC_REMOTE": "none", **servers}
                begun = time.perf_counter()
                for number in range(options.files):
                    command = [options.warpcc, options.nvcc, "-arch=sm_90", "-c", f"f{number}.cu", "-o", f"f{number}.o"]
                    subprocess.run(command, cwd=folder, env=environment, check=True, stderr=subprocess.DEVNULL)
                took = time.perf_counter() - begun
                made = [open(f"{folder}/f{number}.o", "rb").read() for number in range(options.files)]
                if objects.setdefault("all", made) != made:
                    raise SystemExit(f"{what}: other objects")
                if round_ >= 0:
                    times[what].append(took)
                    print(f"{took:6.2f} s  {what}", flush=True)
                shutil.rmtree(cache)
    local = statistics.median(times["no server"])
    rows = [{"what": what, "median_s": statistics.median(all_), "more_than_without_s": statistics.median(all_) - local, "each_s": all_}
            for what, all_ in times.items()]
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"name": "faulty-servers", "files": options.files, "objects_equal": True, "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
