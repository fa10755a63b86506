"""Every function of crates/kernels/tests/peers.txt on a GPU against the function of that name in PyTorch (computed in double) and
in CuPy, with values at the edges and between.

    python3 names.py OUT.json [--kernels FOLDER] [--torch-only]

Needs the wheel, PyTorch and NVRTC, and CuPy unless --torch-only is given. crates/kernels/gpu/run.sh starts this. Exit code: 0 if
every result is right.
"""

import argparse
import json
import pathlib
import sys

import torch

import warpcc_rtc as rtc
from warpcc_rtc import ops
from warpcc_rtc._native import known_functions

PEERS = pathlib.Path(__file__).resolve().parents[2] / "kernels/tests/peers.txt"
#: Functions that a peer defines otherwise at the edges, by docs/kernels.md or by the peer itself: compared where all arguments and
#: results are finite.
DIFFERENT = {
    ("sign", "torch"): "PyTorch has 0 for NaN, NumPy NaN",
    ("gammaln", "cupy"): "CuPy has -inf for -inf, SciPy inf",
    ("softsign", "torch"): "PyTorch has NaN for infinities, here is the limit",
    ("mish", "torch"): "PyTorch has NaN for -inf, here is the limit",
    ("silu", "torch"): "PyTorch has NaN for -inf, here is the limit",
    ("gelu", "torch"): "PyTorch has NaN for -inf, here is the limit",
    ("floor_divide", "cupy"): "CuPy has inf where NumPy has NaN",
    ("mod", "cupy"): "CuPy has NaN for infinite divisors, NumPy the dividend or the divisor",
    ("lerp", "torch"): "PyTorch computes from the nearer end",
    ("sinc", "cupy"): "CuPy has 1 for NaN, NumPy NaN",
    ("heaviside", "torch"): "PyTorch has 0 for NaN, NumPy NaN",
    ("clip", "torch"): "PyTorch gives the upper bound where the bounds are in the wrong order",
    ("clip", "cupy"): "CuPy drops a NaN among the bounds",
}
DIFFERENT.update({(name, peer): DIFFERENT[of, peer] for name, of, peer in [
    ("lgamma", "gammaln", "cupy"), ("swish", "silu", "torch"), ("remainder", "mod", "cupy"), ("clamp", "clip", "cupy")]})
#: Peers that cannot be called with arrays of these types.
OTHER_ARGUMENTS = {
    ("ldexp", "cupy"): "integers as exponents",
    ("prelu", "torch"): "one slope for a channel",
    ("where", "torch"): "bool as condition",
    ("threshold", "torch"): "numbers, not arrays",
}
EDGES = [-float("inf"), -1e3, -88.5, -3.5, -2.5, -1.5, -1.0, -0.75, -0.5, -1e-6, -0.0, 0.0, 1e-6, 0.25, 0.5, 1.0, 1.5, 2.5, 7.0, 88.5, 1e3, float("inf"), float("nan")]
WHOLE = ("bitwise", "left_shift", "right_shift", "invert", "gcd", "lcm", "bit_count")
rows, wrong = [], []


def attribute(path):
    """The function of a dotted name, whose first word is a module."""
    import importlib

    words = path.split(".")
    for count in range(len(words) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(words[:count]))
        except ImportError:
            continue
        for word in words[count:]:
            found = getattr(found, word)
        return found
    raise ImportError(path)


def inputs(name, count):
    """Arrays for a function of `count` arguments: every pair of edges, and random values."""
    generator = torch.Generator().manual_seed(7)
    if name.startswith(WHOLE):
        whole = torch.arange(0, 12, dtype=torch.int32)
        return [whole + shift for shift in range(count)]
    edges = torch.tensor(EDGES)
    others = torch.randn(4096, generator=generator) * 3
    small = torch.rand(4096, generator=generator) * 2 - 1
    if count == 1:
        return [torch.cat([edges, others, small])]
    grid = torch.meshgrid(edges, edges, indexing="ij")
    more = [torch.cat([grid[at % 2].flatten(), torch.randn(4096, generator=generator) * 3]) for at in range(count)]
    return more


def worst(given, wanted):
    """The largest relative error where both are numbers; a text where they are not the same kind of value."""
    given, wanted = given.double().cpu(), wanted.double().cpu()
    if given.shape != wanted.shape:
        return f"shapes {tuple(given.shape)} and {tuple(wanted.shape)}"
    # What double holds may be beyond float.
    beyond = wanted.abs() > 3.4e38
    same = (given.isnan() & wanted.isnan()) | (given == wanted) | (beyond & (given.abs() > 3.3e38) & (given.sign() == wanted.sign()))
    plain = given.isfinite() & wanted.isfinite()
    odd = ~(same | plain)
    if odd.any():
        at = odd.nonzero()[0].item()
        return f"{int(odd.sum())} values: at {at} {given[at].item()} and {wanted[at].item()}", at
    error = ((given - wanted).abs() / (1 + wanted.abs()))[plain & ~same]
    return float(error.max()) if error.numel() else 0.0


def compare(name, peer, arguments, ours, theirs):
    different = DIFFERENT.get((name, peer.partition(".")[0].replace("cupyx", "cupy")))
    if different:
        ours, theirs, arguments = ours.double().cpu(), theirs.double().cpu(), [each.double() for each in arguments]
        keep = ours.isfinite() & theirs.isfinite()
        for each in arguments:
            keep &= each.isfinite()
        if name in ("clip", "clamp"):
            keep &= arguments[1] <= arguments[2]
        ours, theirs, arguments = ours[keep], theirs[keep], [each[keep] for each in arguments]
    error = worst(ours, theirs)
    row = {"name": name, "peer": peer, "values": ours.numel()}
    if different:
        row["only_finite"] = different
    if isinstance(error, float):
        row["error"] = error
        right = error <= 2e-5
    else:
        right = False
        text, at = error if isinstance(error, tuple) else (error, None)
        row["differs"] = text + (f" for {[each[at].item() for each in arguments]}" if at is not None else "")
    rows.append(row)
    if not right:
        wrong.append(row)
        print("WRONG", json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--kernels")
    parser.add_argument("--torch-only", action="store_true")
    options = parser.parse_args()
    cache = rtc.KernelCache([options.kernels] if options.kernels else None, remote="none", packs=[])
    known = dict(known_functions())
    failed = []
    for line in PEERS.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, in_torch, in_cupy = line.split()
        if name not in known:
            continue  # A reduction.
        arguments = [each for each, number in known[name] if number is None]
        given = inputs(name, len(arguments))
        on_gpu = [each.cuda() for each in given]
        try:
            ours = getattr(ops, name)(*on_gpu, cache=cache)
        except Exception as error:
            failed.append({"name": name, "error": repr(error)})
            continue
        if in_torch != "-" and (name, "torch") not in OTHER_ARGUMENTS:
            try:
                wide = [each if each.dtype == torch.int32 else each.double() for each in on_gpu]
                compare(name, in_torch, given, ours, attribute(in_torch)(*wide))
            except Exception as error:
                failed.append({"name": name, "peer": in_torch, "error": repr(error)})
        if in_cupy != "-" and (name, "cupy") not in OTHER_ARGUMENTS and not options.torch_only:
            try:
                import cupy

                theirs = attribute(in_cupy)(*[cupy.asarray(each) for each in on_gpu])
                compare(name, in_cupy, given, ours, torch.as_tensor(theirs, device="cuda"))
            except Exception as error:
                failed.append({"name": name, "peer": in_cupy, "error": repr(error)})
    for row in failed:
        print("NOT RUN", json.dumps(row), flush=True)
    report = {"gpu": torch.cuda.get_device_name(), "compared": len(rows), "wrong": wrong, "not_run": failed, "rows": rows}
    pathlib.Path(options.out).write_text(json.dumps(report, indent=1))
    print(f"{len(rows)} comparisons, {len(wrong)} wrong, {len(failed)} not run")
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
