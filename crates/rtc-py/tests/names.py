"""The names of docs/kernels.md against the installed NumPy, and CuPy where it is installed: each counterpart exists, and what a
name stands for, evaluated by NumPy, is what NumPy's function of that name gives. Run by tests/wheel.rs."""

import os
import pathlib
import re
import site

import numpy

from warpcc_rtc import ops
from warpcc_rtc._native import known_functions

TOP = pathlib.Path(__file__).resolve().parents[3]
PEERS = {}
for line in (TOP / "crates/kernels/tests/peers.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        ours, *theirs = line.split()
        PEERS[ours] = theirs


def attribute(module, path):
    for word in path.split(".")[1:]:
        module = getattr(module, word)
    return module


modules = [(0, numpy)]
if "WARPCC_TEST_ADAPTERS" in os.environ:
    site.addsitedir(os.environ["WARPCC_TEST_ADAPTERS"])
    import cupy
    import cupyx.scipy.special

    modules.append((2, cupy))
checked = 0
for ours, theirs in PEERS.items():
    for column, module in modules:
        name = theirs[column]
        if name.startswith("cupyx."):
            assert callable(attribute(cupyx, name)), name
        elif name != "-":
            assert callable(attribute(module, name)), name
            checked += 1
assert checked > 100, checked

known = dict(known_functions())
for name in set(known) - set(PEERS):
    assert "grad" in name or name.startswith("backward_"), f"peers.txt lacks {name}"
for name in known:
    assert callable(getattr(ops, name)) and name in dir(ops)

# What the names stand for, as the documentation has it.
table = re.findall(r"^\| `(\w+)\((.*?)\)` \| `(.*)` \|$", (TOP / "docs/kernels.md").read_text(), re.MULTILINE)
assert len(table) > 40, len(table)
scope = {ours: attribute(numpy, theirs[0]) for ours, theirs in PEERS.items() if theirs[0] != "-"}
scope.update(zero=numpy.zeros_like, one=numpy.ones_like, identity=numpy.positive)
values = numpy.array([-numpy.inf, -1e3, -3.5, -2.5, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.5, 2.5, 7.0, numpy.inf, numpy.nan])
compared = []
with numpy.errstate(all="ignore"):
    for name, arguments, stands_for in table:
        theirs = PEERS[name][0]
        words = set(re.findall(r"([a-z_0-9]+)\(", stands_for))
        if theirs == "-" or not words <= set(scope) or name == "clamp":
            continue
        names = [argument.partition("=")[0] for argument in arguments.split(", ")]
        whole = any(word.startswith("bitwise") or "shift" in word for word in words)
        given = [numpy.arange(1, 9)] * len(names) if whole else [values, values[:, None]][: len(names)]
        if name == "signbit":
            given = [values[:-1]]  # A NaN has any sign.
        ours = eval(stands_for, dict(scope), dict(zip(names, given)))
        numpy.testing.assert_allclose(ours, attribute(numpy, theirs)(*given), rtol=1e-14, atol=1e-15, err_msg=name)
        compared.append(name)
assert {"round", "sinc", "heaviside", "logaddexp2", "fabs", "maximum", "signbit"} <= set(compared), compared
