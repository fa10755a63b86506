"""Element-wise kernels of PyTorch and CuPy on the arrays that `rtc-verify --only speed` uses: bytes moved in a second.

Run it in the same call as rtc-verify, on the same GPU: python3 peers.py OUT.json
"""

import json
import statistics
import sys

import torch

ROUNDS = 20
BYTES = 1 << 30


def median_ms(run):
    """Of ROUNDS runs, after three that warm up, by the GPU's own clock."""
    for _ in range(3):
        run()
    times = []
    for _ in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def main():
    rows = []

    def note(peer, label, dtype, arrays, size, run):
        ms = median_ms(run)
        rate = arrays * size * dtype.itemsize / ms / 1e6
        rows.append({"peer": peer, "label": label, "type": str(dtype), "ms": ms, "gb_per_s": rate})
        print(f"{rate:8.1f} GB/s  {peer}: {label} {dtype}", flush=True)

    for dtype in (torch.float16, torch.float32):
        size = BYTES // dtype.itemsize
        a, b, c = (torch.rand(size, device="cuda", dtype=dtype) - 0.5 for _ in range(3))
        out = torch.empty_like(a)
        note("copy", "memcpy", dtype, 2, size, lambda: out.copy_(a))
        functional = torch.nn.functional
        for label, run in {
            "relu(a)": lambda: torch.clamp_min(a, 0, out=out),
            "sigmoid(a)": lambda: torch.sigmoid(a, out=out),
            "tanh(a)": lambda: torch.tanh(a, out=out),
            "exp(a)": lambda: torch.exp(a, out=out),
            "a * 2.5": lambda: torch.mul(a, 2.5, out=out),
            "gelu(a)": lambda: functional.gelu(a),
            "gelu_tanh(a)": lambda: functional.gelu(a, approximate="tanh"),
        }.items():
            note("torch", label, dtype, 2, size, run)
        note("torch", "a + b", dtype, 3, size, lambda: torch.add(a, b, out=out))
        note("torch", "a * b", dtype, 3, size, lambda: torch.mul(a, b, out=out))
        # Bytes as one kernel would move them: three arrays in, one out.
        note("torch unfused", "relu(a * b + c)", dtype, 4, size, lambda: torch.relu(a * b + c))
        try:
            fused = torch.compile(lambda x, y, z: torch.relu(x * y + z))
            note("torch.compile", "relu(a * b + c)", dtype, 4, size, lambda: fused(a, b, c))
        except Exception as error:  # A machine without a C compiler, say.
            print(f"torch.compile: {error}"[:300])
        try:
            import cupy

            x, y, o = cupy.from_dlpack(a), cupy.from_dlpack(b), cupy.from_dlpack(out)
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                note("cupy", "a + b", dtype, 3, size, lambda: cupy.add(x, y, out=o))
                note("cupy", "exp(a)", dtype, 2, size, lambda: cupy.exp(x, out=o))
        except Exception as error:
            print(f"cupy: {error}"[:300])
        side = 16384 if dtype.itemsize == 4 else 16384 + 8192
        x, y = (torch.empty(side, side, device="cuda", dtype=dtype) for _ in range(2))
        out = torch.empty_like(x)
        x.fill_(0.25), y.fill_(0.5)
        note("torch", "identity(a) of turned matrix", dtype, 2, x.numel(), lambda: out.copy_(x.T))
        note("torch", "a + b of matrix and turned matrix", dtype, 3, x.numel(), lambda: torch.add(x, y.T, out=out))
        note("torch", "a + b of matrix and row", dtype, 2, x.numel(), lambda: torch.add(x, y[0], out=out))
        note("torch", "a + b of matrix and column", dtype, 2, x.numel(), lambda: torch.add(x, y[0][:, None], out=out))
        del x, y, out
        for columns in (128, 4096, 65536):
            m = a.view(-1, columns)
            shape = list(m.shape)
            for axis in (1, 0):
                note("torch", f"sum {shape} over {axis}", dtype, 1, size, lambda: m.sum(axis))
        m = a.view(-1, 4096)
        shape = list(m.shape)
        for what, run in {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "norm2": torch.linalg.vector_norm}.items():
            note("torch", f"{what} {shape} over all", dtype, 1, size, lambda: run(m))
            if what != "sum":
                note("torch", f"{what} {shape} over 1", dtype, 1, size, lambda: run(m, dim=1))
        del a, b, c, m
        torch.cuda.empty_cache()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
