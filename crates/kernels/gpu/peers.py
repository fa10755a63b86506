"""Element-wise kernels and reductions of warpcc, PyTorch and CuPy, alternating on the same arrays: bytes moved in a second.

    python3 peers.py OUT.json        needs the wheel, PyTorch, and CuPy where it is to be compared

crates/kernels/gpu/run.sh installs the wheel and starts this. A peer's time is that of the GPU alone: its launch is made while the GPU
still waits for what stands before. Exit code: 0 if what warpcc gives is near to what PyTorch gives.
"""

import json
import statistics
import sys

import torch

import warpcc_rtc as rtc

try:
    import cupy
except Exception as error:  # Without it the rest is still worth knowing.
    print(f"no CuPy: {error}")
    cupy = None

ROUNDS = 20
BYTES = 1 << 30
ROWS, WRONG = [], []
CACHE = rtc.KernelCache([], remote="none")


def medians(runs):
    """Milliseconds of each, over ROUNDS rounds after three that warm up, by the GPU's own clock."""
    times = {peer: [] for peer in runs}
    for number in range(ROUNDS + 3):
        for peer, run in runs.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(1_000_000)  # Half a millisecond to make the calls in.
            start.record()
            run()
            end.record()
            end.synchronize()
            if number >= 3:
                times[peer].append(start.elapsed_time(end))
    return {peer: statistics.median(of) for peer, of in times.items()}


def note(label, dtype, size, runs):
    """Times the peers, `size` bytes moved by each; those that do not run are left out."""
    able = {}
    for peer, run in runs.items():
        try:
            run()
            torch.cuda.synchronize()
            able[peer] = run
        except Exception as error:
            print(f"{label}, {peer}: {error}"[:300])
            if peer in ("warpcc", "torch"):
                WRONG.append(f"{label} {dtype}, {peer}: {error}")
    rates = {peer: size / ms / 1e6 for peer, ms in medians(able).items()}
    best = max((rate for peer, rate in rates.items() if peer not in ("warpcc", "copy")), default=None)
    ratio = rates["warpcc"] / best if best and "warpcc" in rates else None
    ROWS.append({"label": label, "type": str(dtype), "bytes": size, "gb_per_s": rates, "of_best_peer": ratio})
    rates_shown = "  ".join(f"{peer} {rate:.0f}" for peer, rate in rates.items())
    print(f"{ratio or 0:6.3f}  {label} {dtype}: {rates_shown}", flush=True)


def same(label, given, wanted, tolerance=2e-3):
    """That both computed the same: a speed of something else would say nothing. verify.py and rtc-verify look closer."""
    given, wanted = given.double(), wanted.double()
    error = torch.where(given == wanted, 0, (given - wanted).abs() / (1 + wanted.abs())).max().item()  # Both may be infinite.
    if not error <= tolerance:
        WRONG.append(f"{label}: off by {error}")
        print(f"WRONG  {WRONG[-1]}")


def pair(label, dtype, size, ours, theirs, out, more=None):
    """warpcc and PyTorch, both to `out`; what they gave is compared."""
    theirs()
    wanted = out[:4096].clone()
    out[:4096].zero_()
    ours()
    same(f"{label} {dtype}", out[:4096], wanted)
    note(label, dtype, size, {"warpcc": ours, "torch": theirs, **(more or {})})


def vectors(dtype):
    size = BYTES // dtype.itemsize
    a, b, c = (torch.rand(size, device="cuda", dtype=dtype) - 0.5 for _ in range(3))
    out = torch.empty_like(a)
    moved = size * dtype.itemsize
    note("copy", dtype, 2 * moved, {"copy": lambda: out.copy_(a)})
    nn = torch._C._nn  # Those with `out`.
    of_cupy = {}
    if cupy is not None:
        x, y, o = cupy.from_dlpack(a), cupy.from_dlpack(b), cupy.from_dlpack(out)
        of_cupy = {  # Both work on the default stream.
            "relu": lambda: cupy.maximum(x, 0, out=o),
            "tanh": lambda: cupy.tanh(x, out=o),
            "exp": lambda: cupy.exp(x, out=o),
            "add": lambda: cupy.add(x, y, out=o),
            "mul": lambda: cupy.multiply(x, y, out=o),
        }

    def more(name):
        return {"cupy": of_cupy[name]} if name in of_cupy else {}

    for name, theirs in {
        "relu": lambda: torch.clamp_min(a, 0, out=out),
        "sigmoid": lambda: torch.sigmoid(a, out=out),
        "tanh": lambda: torch.tanh(a, out=out),
        "exp": lambda: torch.exp(a, out=out),
        "silu": lambda: nn.silu(a, out=out),
        "gelu": lambda: nn.gelu(a, out=out),
        "gelu_tanh": lambda: nn.gelu(a, approximate="tanh", out=out),
    }.items():
        pair(name, dtype, 2 * moved, lambda name=name: rtc.unary(name, a, out, cache=CACHE), theirs, out, more(name))
    pair("a * 2.5", dtype, 2 * moved, lambda: rtc.fused("a * 2.5", a=a, out=out, cache=CACHE), lambda: torch.mul(a, 2.5, out=out), out)
    for name, theirs in {"add": torch.add, "mul": torch.mul}.items():
        ours = lambda name=name: rtc.binary(name, a, b, out, cache=CACHE)
        pair(name, dtype, 3 * moved, ours, lambda theirs=theirs: theirs(a, b, out=out), out, more(name))
    # Bytes as one kernel has to move them: three arrays in, one out.
    text = "relu(a * b + c)"
    runs = {
        "warpcc": lambda: rtc.fused(text, a=a, b=b, c=c, out=out, cache=CACHE),
        "torch unfused": lambda: torch.relu(a * b + c),
    }
    compiled = torch.compile(lambda x, y, z: torch.relu(x * y + z))
    runs["torch.compile"] = lambda: compiled(a, b, c)
    note(text, dtype, 4 * moved, runs)
    same(text, rtc.fused(text, a=a[:4096], b=b[:4096], c=c[:4096], cache=CACHE), torch.relu(a[:4096] * b[:4096] + c[:4096]))
    for columns in (128, 4096, 65536):
        m = a.view(-1, columns)
        for name, theirs in {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "norm2": torch.linalg.vector_norm}.items():
            for axis in (1, 0, None):
                label = f"{name} {list(m.shape)} over {'all' if axis is None else axis}"
                wanted = theirs(m, dim=axis) if axis is not None else theirs(m)
                given = rtc.reduce(name, m, axis, cache=CACHE)
                scale = m.shape[axis] if axis is not None else m.numel()
                same(f"{label} {dtype}", given, wanted, 2e-3 * (scale**0.5 if name == "sum" else 1))
                ours = lambda: rtc.reduce(name, m, axis, cache=CACHE)
                run = (lambda: theirs(m, dim=axis)) if axis is not None else (lambda: theirs(m))
                note(label, dtype, moved, {"warpcc": ours, "torch": run})


def matrices(dtype):
    side = 16384 if dtype.itemsize == 4 else 16384 + 8192
    x, y, out = (torch.empty(side, side, device="cuda", dtype=dtype) for _ in range(3))
    for each in (x, y):
        each.copy_(torch.randint(0, 9, (side, side), device="cuda", dtype=torch.uint8))
    moved = x.numel() * dtype.itemsize
    add = lambda left, right: (
        lambda: rtc.binary("add", left, right, out, cache=CACHE),
        lambda: torch.add(left, right, out=out),
    )
    note("copy of a matrix", dtype, 2 * moved, {"copy": lambda: out.copy_(x)})
    transposed = x.T
    pair("transposed", dtype, 2 * moved, lambda: rtc.unary("identity", transposed, out, cache=CACHE), lambda: out.copy_(transposed), out)
    pair("matrix + transposed", dtype, 3 * moved, *add(y, transposed), out)
    pair("matrix + row", dtype, 2 * moved, *add(x, y[0]), out)
    pair("matrix + column", dtype, 2 * moved, *add(x, y[0][:, None]), out)
    for off, width in ((1, side - 2), (4, side - 4)):
        part = x[:, off : off + width]
        target = out.view(-1)[: part.numel()].view(part.shape)
        ours = lambda: rtc.unary("identity", part, target, cache=CACHE)
        pair(f"columns {off} to {off + width}", dtype, 2 * part.numel() * dtype.itemsize, ours, lambda: target.copy_(part), target)


def main():
    torch.manual_seed(torch.seed() & 0x7FFFFFFF)
    for dtype in (torch.float16, torch.float32):
        vectors(dtype)
        torch.cuda.empty_cache()
    for dtype in (torch.float16, torch.float32, torch.uint8):
        matrices(dtype)
        torch.cuda.empty_cache()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        versions = {"torch": torch.__version__, "cupy": getattr(cupy, "__version__", None)}
        json.dump({**versions, "gpu": torch.cuda.get_device_name(), "wrong": WRONG, "rows": ROWS}, file, indent=1)
    slower = [row for row in ROWS if row["of_best_peer"] is not None and row["of_best_peer"] < 1]
    print(f"{len(ROWS)} compared, {len(slower)} slower than a peer, {len(WRONG)} wrong")
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main()
