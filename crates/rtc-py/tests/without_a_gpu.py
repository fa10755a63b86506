"""The installed package on a machine without a GPU: compiling, the cache, errors, threads. Run by tests/wheel.rs."""

import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy

import warpcc_rtc

FOLDER = sys.argv[1]
SCALE = "template<class T> __global__ void scale(T* x) { *x *= N; }\n"


class Fake:
    """An array on a GPU, as far as its description goes."""

    def __init__(self, shape=(4,), typestr="<f4", address=0x7F0000000000, readonly=False, **more):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (address, readonly), "version": 3, **more,
        }


def raises(kind, *words):
    """Fails unless what it is with raises `kind` with these words."""

    class Raises:
        def __enter__(self):
            return self

        def __exit__(self, found, error, _):
            assert found is not None and issubclass(found, kind), f"not {kind.__name__}: {found} {error}"
            for word in words:
                assert word in str(error), f"{word!r} is not in: {error}"
            self.error = error
            return True

    return Raises()


def cache(name="cache", **how):
    how.setdefault("remote", "none")
    return warpcc_rtc.KernelCache([f"{FOLDER}/{name}"], **how)


def compiles_and_keeps():
    first = cache()
    assert first.nvrtc_version == "13.5", first.nvrtc_version
    image = first.compile(SCALE, "scale<float>", "sm_90", names=["scale<int>"], parameters="#define N 3")
    assert image.image.startswith(b"\x7fELF") and len(image) == len(image.image)
    assert image.lowered == {"scale<float>": "_Z5scaleIfEvPT_", "scale<int>": "_Z5scaleIiEvPT_"}
    assert image.lowered_name("scale<int>") == "_Z5scaleIiEvPT_"
    with raises(warpcc_rtc.ArgumentError, "scale<double>", "scale<int>"):
        image.lowered_name("scale<double>")
    assert (image.found, image.target, len(image.key)) == ("made", "sm_90", 64)
    again = first.compile(SCALE, "scale<float>", "sm_90", names=["scale<int>"], parameters="#define N 3")
    assert again.found == "memory" and again.image == image.image
    assert first.counts == {"memory": 1, "disk": 0, "shared": 0, "made": 1}
    # Another parameter, option, header or target is another kernel.
    for how in (
        {"parameters": "#define N 4"},
        {"parameters": "#define N 3", "options": ["-DOTHER"]},
        {"parameters": "#define N 3", "headers": {"h.h": "// a header"}},
    ):
        assert first.compile(SCALE, "scale<float>", "sm_90", names=["scale<int>"], **how).found == "made"
    ptx = first.compile(SCALE, "scale<float>", "compute_90", parameters="#define N 3")
    assert b".entry _Z5scaleIfEvPT_(" in ptx.image and ptx.target == "compute_90"
    assert first.remarks == [], first.remarks
    # Another process compiles nothing.
    text = (
        f"import warpcc_rtc as w\nc = w.KernelCache([{FOLDER + '/cache'!r}], remote='none')\n"
        f"i = c.compile({SCALE!r}, 'scale<float>', 'sm_90', names=['scale<int>'], parameters='#define N 3')\n"
        "print(i.found, i.key, c.counts)\n"
    )
    told = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout
    assert told == f"disk {image.key} {{'memory': 0, 'disk': 1, 'shared': 0, 'made': 0}}\n", told


def headers_and_folders():
    header = f"{FOLDER}/n.h"
    kept = cache("headers", headers={"type.h": "typedef float type;"}, preamble={"common.h": "#define TWICE 2\n"})
    source = '#include "type.h"\n#include "n.h"\n__global__ void k(type* x) { *x = N * TWICE; }'
    images = []
    for value in (3, 4, 3):
        with open(header, "w", encoding="utf-8") as file:
            file.write(f"#define N {value}\n")
        images.append(kept.compile(source, "k", "sm_90", include=[FOLDER]))
    assert images[0].image == images[2].image != images[1].image
    assert [image.found for image in images[:2]] == ["made", "made"] and images[2].found != "made"


def links():
    kept = cache("link")
    callee = kept.compile("__device__ float twice(float x) { return 2 * x; }\n__global__ void unused() {}", "unused", "lto_90")
    caller = kept.compile(
        "__device__ float twice(float);\n__global__ void k(float* x) { *x = twice(*x); }", "k", "lto_90"
    )
    linked = kept.link([caller, ("ltoir", callee.image)], "sm_90", options=["-lto"])
    assert linked.image.startswith(b"\x7fELF") and linked.found == "made"
    assert kept.link([caller, ("ltoir", callee.image)], "sm_90", options=["-lto"]).found == "memory"
    with raises(warpcc_rtc.LinkError, "twice") as raised:
        kept.link([caller], "sm_90", options=["-lto"])
    assert "twice" in raised.error.log
    ptx = kept.compile(SCALE, "scale<float>", "compute_90", parameters="#define N 3").image
    cubin = kept.load_ptx(ptx.decode(), "sm_90")
    assert cubin.image.startswith(b"\x7fELF")
    assert cache("link").load_ptx(ptx, "sm_90").found == "disk"
    with raises(warpcc_rtc.ArgumentError, "piece 0", "zip"):
        kept.link([("zip", b"")], "sm_90")
    with raises(TypeError, "piece 0"):
        kept.link([3], "sm_90")


def errors_say_what_is_wrong():
    kept = cache("errors")
    with raises(warpcc_rtc.CompileError, "k:2: ", "oops", "sm_90") as raised:
        kept.compile("\n__global__ void k() { oops; }", "k", "sm_90")
    error = raised.error
    assert "oops" in error.log and error.place.startswith("k:2: ") and error.target == "sm_90" and error.name == "k"
    assert "--gpu-architecture=sm_90" in error.options
    with open(error.saved, encoding="utf-8") as file:
        assert "oops" in file.read()
    with raises(warpcc_rtc.ArgumentError, "arch", "sm_9x", "compute_90"):
        kept.compile(SCALE, "scale<float>", "sm_9x")
    with raises(warpcc_rtc.ArgumentError, "source", "NUL"):
        kept.compile("a\0b", "k", "sm_90")
    for how in ({"parameters": "a\0"}, {"names": ["k\0"]}, {"options": ["-D\0"]}, {"headers": {"h.h": "\0"}}):
        with raises(warpcc_rtc.ArgumentError, "NUL"):
            kept.compile("__global__ void k() {}", "k", "sm_90", **how)
    with raises(TypeError, "int", "str"):
        kept.compile(3, "k", "sm_90")
    # A GPU newer than NVRTC takes PTX; one that is too old has nothing.
    assert kept.best_arch(90) == "sm_90" and kept.best_arch(999).startswith("compute_")
    with raises(warpcc_rtc.LibraryError, "compute capability 2.0"):
        kept.best_arch(20)
    with raises(warpcc_rtc.ArgumentError, "-arch"):
        kept.compile("", "k", "sm_90", options=["-arch=sm_80"])
    with raises(warpcc_rtc.ArgumentError, "timeout"):
        kept.compile(SCALE, "scale<float>", "sm_90", timeout=-1.0)
    with raises(TimeoutError, "longer than allowed"):
        kept.compile(SCALE, "scale<float>", "sm_90", parameters="#define N 77", timeout=0.0)
    with raises(warpcc_rtc.ArgumentError, "folders", "absolute"):
        warpcc_rtc.KernelCache(["relative"])
    with raises(warpcc_rtc.LibraryError, "NVRTC", "/nowhere"):
        warpcc_rtc.KernelCache([], nvrtc="/nowhere")
    # Without a GPU: said so, and what to do.
    with raises(warpcc_rtc.ArgumentError, "arch", "sm_90"):
        kept.compile(SCALE, "scale<float>", parameters="#define N 3")
    with raises(warpcc_rtc.LibraryError, "libcuda.so.1"):
        kept.get_function("", "k", "__global__ void k() {}")
    odd = cache("odd", remote="u:hunter2@nowhere")
    assert any("shared cache" in remark for remark in odd.remarks) and "hunter2" not in str(odd.remarks)


def arrays_are_checked_before_a_launch():
    kept = cache("arrays")
    host, good = numpy.zeros(4, dtype=numpy.float32), Fake()
    unary = lambda x, out=good, function="gelu": warpcc_rtc.unary(function, x, out, cache=kept)
    with raises(warpcc_rtc.ArgumentError, "x: it is on the CPU", "numpy.ndarray", "CUDA GPU"):
        unary(host)
    with raises(warpcc_rtc.ArgumentError, "out: it is on the CPU"):
        unary(good, host)
    with raises(TypeError, "x: list is not an array", "__dlpack__"):
        unary([1.0])
    with raises(warpcc_rtc.ArgumentError, "x: it is of type", "<c8", "float32"):
        unary(Fake(typestr="<c8"))
    with raises(warpcc_rtc.ArgumentError, "out: it is read-only"):
        unary(good, Fake(readonly=True))
    with raises(warpcc_rtc.ArgumentError, "nope"):
        unary(good, function="nope")
    with raises(warpcc_rtc.ArgumentError, "stride of 6 bytes"):
        unary(Fake(strides=(6,)))
    with raises(warpcc_rtc.ArgumentError, "mask"):
        unary(Fake(mask=Fake()))
    with raises(warpcc_rtc.ArgumentError, "multiple of the size of float32"):
        unary(Fake(address=0x7F0000000001))
    with raises(warpcc_rtc.ArgumentError, "output", "does not broadcast"):
        unary(good, Fake((5,)))
    with raises(warpcc_rtc.ArgumentError, "out:", "float32", "(4,)"):
        unary(good, None)
    with raises(warpcc_rtc.ArgumentError, "y has shape [2]", "[3]"):
        warpcc_rtc.binary("add", Fake((3,)), Fake((2,)), good, cache=kept)
    with raises(warpcc_rtc.ArgumentError, '"b"'):
        warpcc_rtc.fused("relu(a * x + b)", a=2.0, x=good, out=good, cache=kept)
    with raises(warpcc_rtc.ArgumentError):
        warpcc_rtc.fused("relu(", x=good, out=good, cache=kept)
    for text, word in (("nope(x)", "nope"), ("x @ x", "@"), ("x\0", "column 2")):
        with raises(warpcc_rtc.ArgumentError, word):
            warpcc_rtc.fused(text, x=good, out=good, cache=kept)
    with raises(warpcc_rtc.ArgumentError, "address 0"):
        unary(Fake(address=0))
    with raises(warpcc_rtc.ArgumentError, "shares memory with input b"):
        warpcc_rtc.fused("x + b", x=good, b=Fake((1,)), out=good, cache=kept)
    with raises(warpcc_rtc.ArgumentError, "axis 2", "2 dimension"):
        warpcc_rtc.reduce("sum", Fake((4, 4)), 2, good, cache=kept)
    with raises(warpcc_rtc.ArgumentError, "named twice"):
        warpcc_rtc.reduce("sum", Fake((4, 4)), (1, -1), good, cache=kept)
    with raises(warpcc_rtc.ArgumentError, "stream", "str"):
        warpcc_rtc.unary("gelu", good, good, stream="0", cache=kept)
    # All is well but for the driver.
    for run in (
        lambda: unary(good),
        lambda: warpcc_rtc.fused("relu(a * x + b)", a=numpy.float32(2), x=good, b=Fake((1,), "<f2", 0x7F0000001000), out=good, cache=kept),
        lambda: warpcc_rtc.reduce("sum", Fake((4, 4), address=0x7F0000001000, strides=(4, 16)), -1, good, cache=kept),
    ):
        with raises(warpcc_rtc.LibraryError, "libcuda.so.1"):
            run()
    # Nothing to do needs nobody.
    warpcc_rtc.unary("gelu", Fake((0,)), Fake((0,)), cache=kept)


def threads_share_and_do_not_hold_each_other_up():
    kept = cache("threads")
    found, ticks, over = [], [], threading.Event()

    def ask(number):
        image = kept.compile(SCALE, "scale<float>", "sm_90", parameters=f"#define N {number % 4}")
        found.append((number % 4, image.image))

    def tick():
        while not over.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    ticking.join()
    assert kept.counts["made"] == 4 and len(found) == 16 and len(set(found)) == 4, kept.counts
    # Others ran while NVRTC did: four compilations take far longer than ten ticks.
    assert len(ticks) > 10, len(ticks)


CHILD = '''
import sys, threading, warpcc_rtc
kept = warpcc_rtc.KernelCache([sys.argv[1]], remote="none")
body = "".join(f"x[{i}] = sinf(x[{i}]) * tanf(x[{i} + 1]);\\n" for i in range(4000))
long = "extern \\"C\\" __global__ void k(float* x) {" + body + "}"
helper = threading.Thread(target=lambda: kept.compile("__global__ void k() {}", "k", "compute_80", parameters="// another"))
try:
    kept.compile(long, "k", "sm_90")
    sys.exit("it was compiled")
except KeyboardInterrupt:
    pass
helper.start()
helper.join()
small = kept.compile("__global__ void k() {}", "k", "compute_80")
assert small.found == "made" and kept.counts["made"] == 2, kept.counts
try:
    kept.compile(long, "k", "sm_90", timeout=0.05)
    sys.exit("it was compiled in no time")
except warpcc_rtc.DeadlineError:
    pass
print("goes on", kept.remarks)
sys.exit(7)
'''


def threads_of(process):
    found = []
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        try:
            found.append((task / "comm").read_text().strip())
        except OSError:
            pass
    return found


def control_c_ends_a_compilation():
    # Minutes of work for NVRTC; a signal from outside as soon as NVRTC has its thread.
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, f"{FOLDER}/interrupted"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 60
        while "warpcc-rtc" not in threads_of(child):
            assert child.poll() is None and time.monotonic() < until, child.communicate()
            time.sleep(0.01)
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        said, complained = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (child.returncode, said) == (7, "goes on []\n"), (child.returncode, said, complained)


def a_shared_cache_serves_another_machine():
    share = f"file:{FOLDER}/share"
    ask = lambda kept: kept.compile(SCALE, "scale<float>", "sm_90", parameters="#define N 9")
    first = cache("machine-1", remote=share)
    made = ask(first)
    assert first.flush(60.0), first.remarks
    second = cache("machine-2", remote=share)
    same = ask(second)
    assert (same.found, same.image) == ("shared", made.image), (same.found, second.remarks)
    nobody = cache("machine-3", remote="http://127.0.0.1:1")
    alone = ask(nobody)
    assert (alone.found, alone.image) == ("made", made.image)
    assert len(nobody.remarks) == 1 and "cannot reach" in nobody.remarks[0], nobody.remarks
    # What waits is reported, and no time is too long.
    assert not nobody.flush(10.0) and any("to be uploaded to http://127.0.0.1:1" in text for text in nobody.remarks)
    assert second.flush(1e15) and second._settle(1e15)


for test in (
    compiles_and_keeps,
    headers_and_folders,
    links,
    errors_say_what_is_wrong,
    arrays_are_checked_before_a_launch,
    threads_share_and_do_not_hold_each_other_up,
    control_c_ends_a_compilation,
    a_shared_cache_serves_another_machine,
):
    print(test.__name__, flush=True)
    test()
