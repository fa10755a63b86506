"""What reaches the driver: grids, arguments' bytes, streams, GPUs. With a stand-in for the driver (fake_driver.c), so that
nothing runs; gpu/verify.py is for machines with a GPU. Run by tests/wheel.rs."""

import ctypes
import os
import struct
import sys
import types

import numpy

import warpcc_rtc
import warpcc_rtc.ops

FOLDER = sys.argv[1]
LAUNCHES = os.environ["FAKE_LAUNCHES"]
KERNEL = "extern \"C\" __global__ void k(float* x, int n, float by, bool b, double d, void* p, char c) {}"
cache = warpcc_rtc.KernelCache([f"{FOLDER}/launches-cache"], remote="none")
libcuda = ctypes.CDLL("libcuda.so.1")


class Array:
    """An array on a GPU by its description alone."""

    def __init__(self, address=0x7F0000000000, shape=(4,), typestr="<f4", stream=None):
        self.address = address
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (address, False), "version": 3, "stream": stream,
        }


def parameters(*sizes):
    # The process's own environment, which the driver reads.
    os.environ["FAKE_PARAMETERS"] = ",".join(map(str, sizes))


def what_a_driver_refuses_is_told_and_the_context_goes_on():
    parameters(8)
    ask = lambda: cache.get_function("", "refused", 'extern "C" __global__ void refused(float* x) {}')
    # Of a driver that is older than the PTX, and others.
    for number, advice in ((209, "another GPU"), (218, "load_ptx"), (222, "update the driver"), (223, "CUDA_DISABLE_PTX_JIT")):
        os.environ["FAKE_REFUSAL"] = str(number)
        try:
            ask()
            raise AssertionError("it was loaded")
        except warpcc_rtc.LoadError as error:
            assert error.number == number and advice in error.advice and advice in str(error), error
    del os.environ["FAKE_REFUSAL"]
    kernel = ask()
    assert noted(lambda: kernel[1, 1](Array()))[-1].startswith("launch")


def errors_name_the_file_of_a_kernel():
    ask = lambda file: cache.get_function("", "bad", "\n\noops\n", file=file)
    for file in ("src/mine.cu", None):
        try:
            ask(file)
            raise AssertionError("it compiles")
        except warpcc_rtc.CompileError as error:
            assert ("src/mine.cu:3" in str(error)) == (file is not None), error
    # It decides nothing else.
    source = 'extern "C" __global__ void filed(float* x) {}'
    made = cache.counts["made"]
    cache.get_function("", "filed", source, file="a.cu")
    cache.get_function("", "filed", source, file="b.cu")
    cache.get_function("", "filed", source)
    assert cache.counts["made"] == made + 1, cache.counts


def noted(run):
    """What the driver was told by `run`."""
    open(LAUNCHES, "w").close()
    run()
    with open(LAUNCHES, encoding="utf-8") as file:
        return file.read().splitlines()


def raises(kind, run, *words):
    try:
        lines = noted(run)
    except kind as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in: {error}"
        with open(LAUNCHES, encoding="utf-8") as file:
            assert "launch" not in file.read(), "it was launched all the same"
        return
    raise AssertionError(f"no {kind.__name__}: {lines}")


def hexed(code, value):
    return struct.pack("<" + code, value).hex()


def a_kernel_gets_its_arguments():
    parameters(8, 4, 4, 1, 8, 8, 1)
    kernel = cache.get_function("", "k", KERNEL)
    assert (kernel.name, kernel.device) == ("k", 0)
    x = Array()
    call = lambda: kernel[(2, 3), 64](x, -7, 1.5, True, 2.5, None, 255, shared=100, stream=0x30)
    bytes_of = [
        hexed("Q", 0x7F0000000000), hexed("i", -7), hexed("f", 1.5), "01", hexed("d", 2.5), hexed("Q", 0), "ff",
    ]
    wanted = "launch gpu 0 grid 2,3,1 block 64,1,1 shared 100 stream 0x30 " + " ".join(bytes_of)
    assert noted(call)[-1] == wanted, noted(call)
    by_name = lambda: kernel.launch((2, 3), (64, 1, 1), [x, -7, 1.5, True, 2.5, None, 255], shared=100, stream=0x30)
    assert noted(by_name)[-1] == wanted
    # NumPy's and ctypes' scalars and bytes are taken as they are.
    exact = lambda: kernel[(2, 3), 64](
        0x7F0000000000, numpy.int32(-7), ctypes.c_float(1.5), numpy.bool_(True), numpy.float64(2.5), bytes(8),
        numpy.uint8(255), shared=100, stream=0x30,
    )
    assert noted(exact)[-1] == wanted
    much = noted(lambda: kernel[1, 1](x, 1, 1.0, False, 1.0, None, 0, shared=60_000))
    assert "attribute 8 60000" in much
    # The same function again, from memory: nothing is loaded.
    assert noted(lambda: cache.get_function("", "k", KERNEL)) == []


def what_does_not_fit_is_not_launched():
    parameters(8, 4, 4, 1, 8, 8, 1)
    kernel = cache.get_function("", "k", KERNEL)
    x, good = Array(), [Array(), 1, 1.0, True, 1.0, None, 0]
    refused = lambda run, *words: raises(warpcc_rtc.ArgumentError, run, *words)
    other = lambda index, value: lambda: kernel[1, 1](*good[:index], value, *good[index + 1 :])
    refused(lambda: kernel[1, 1](x), "7 argument(s)", "1 were given")
    refused(other(1, 1 << 40), "argument 1", "4 byte(s)")
    refused(other(6, 256), "argument 6", "1 byte(s)")
    refused(other(1, numpy.int64(1)), "argument 1", "8 byte(s)", "4")
    refused(other(1, x), "argument 1", "array", "4 byte(s)")
    refused(other(3, 1.0), "argument 3", "1 byte(s)")
    refused(other(0, numpy.zeros(4)), "argument 0", "on the CPU")
    raises(TypeError, other(0, [1]), "argument 0", "list")
    raises(TypeError, other(0, "text"), "argument 0", "str")
    refused(lambda: kernel[1, 1025](*good), "block", "1025")
    refused(lambda: kernel[1, (32, 32, 2)](*good), "2048 threads")
    refused(lambda: kernel[1, 513](*good), "513 threads", "at most 512")
    refused(lambda: kernel[0, 1](*good), "grid", "0")
    refused(lambda: kernel[(1, 70_000), 1](*good), "grid", "65535")
    refused(lambda: kernel[1], "f[grid, block]")
    refused(lambda: kernel[1, "x"], "block", "str")
    refused(lambda: cache.get_function("", "k", KERNEL, device="no"), "device")
    raises(warpcc_rtc.LoadError, lambda: cache.get_function("", "k", KERNEL, device=2), "GPU 2")


def streams_are_those_of_the_arrays_makers():
    parameters(8)
    kernel = cache.get_function("", "one", 'extern "C" __global__ void one(float* x) {}')
    stream = lambda lines: lines[-1].split(" stream ")[1].split()[0]
    assert stream(noted(lambda: kernel[1, 1](Array()))) == "(nil)"

    class Own:
        def __cuda_stream__(self):
            return (0, 0x50)

    assert stream(noted(lambda: kernel[1, 1](Array(), stream=Own()))) == "0x50"
    assert stream(noted(lambda: kernel[1, 1](Array(), stream=types.SimpleNamespace(ptr=0x60)))) == "0x60"
    # An array that another stream still writes: ours waits.
    waits = noted(lambda: kernel[1, 1](Array(stream=0x70), stream=0x80))
    assert waits[:2] == ["record 0x70", "wait 0x80"] and stream(waits) == "0x80", waits
    # A framework's own, on its current stream, which its array gets.
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x90))
    asked = []

    class Tensor(Array):
        is_cuda, device = True, "cuda:0"

    Tensor.__module__ = "torch"
    torch.empty = lambda shape, dtype, device: asked.append((shape, dtype, device)) or Tensor(0x7F0000001000)
    torch.float32 = "a float32"
    sys.modules["torch"] = torch
    assert stream(noted(lambda: kernel[1, 1](Tensor()))) == "0x90"
    parameters(8, 8, 4, 4)
    lines = noted(lambda: warpcc_rtc.unary("relu", Tensor(), cache=cache))
    assert stream(lines) == "0x90" and asked == [((4,), "a float32", "cuda:0")], (lines, asked)


def gpus_are_those_of_the_arrays():
    parameters(8, 8, 4, 4)
    near, far = Array(), Array(0x7F1000000000)
    out = Array(0x7F1000002000)
    current = ctypes.c_void_p()
    lines = noted(lambda: warpcc_rtc.unary("relu", far, out, cache=cache))
    assert lines[-1].startswith("launch gpu 1 "), lines
    # The thread's current GPU is what it was.
    assert libcuda.cuCtxGetCurrent(ctypes.byref(current)) == 0
    after = current.value
    noted(lambda: warpcc_rtc.unary("relu", far, out, cache=cache))
    libcuda.cuCtxGetCurrent(ctypes.byref(current))
    assert current.value == after
    lines = noted(lambda: warpcc_rtc.reduce("sum", near, out=Array(0x7F0000003000, ()), cache=cache))
    assert lines[-1].startswith("launch gpu 0 "), lines
    # One result of many values is found in parts: two kernels, and memory between them in the stream's order, from a pool
    # that is made once and keeps it.
    many = Array(shape=(1 << 28,))
    total = lambda: warpcc_rtc.reduce("sum", many, out=Array(0x7F0E00000000, ()), stream=0x50, cache=cache)
    parameters()
    lines = noted(total)
    assert lines[4:6] == ["pool 1 0 1 0", f"pool attribute 4 {64 << 20}"], lines
    lines = noted(total)
    assert [line.split()[0] for line in lines] == ["take", "launch", "launch", "give"], lines
    assert all(" stream 0x50" in line for line in lines) and lines[-1].startswith("give 7f0f00000000 "), lines
    # A host's pointer that pretends.
    raises(warpcc_rtc.ArgumentError, lambda: warpcc_rtc.unary("relu", Array(4096), near, cache=cache), "input x", "0x1000")


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
api = ctypes.pythonapi


def declared(name, result, *arguments):
    function = getattr(api, name)
    function.restype, function.argtypes = result, arguments
    return function


# The capsule that is being freed must not be held again: its address alone is passed on.
new_capsule = declared("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR)
capsule_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", api))


class Old(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class New(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
        ("flags", ctypes.c_uint64), ("tensor", DlTensor),
    ]


class Producer:
    """What gives an array by DLPack, as dlpack.h has it, and counts how often it gets it back."""

    def __init__(self, versioned=True, major=1, flags=0, kind=2, said=None, ndim=1, shape=(4,), name=None, address=0x7F0000000000, strides=None):
        self.deleted, self.asked, self.kept = 0, [], []
        self.versioned, self.said = versioned, kind if said is None else said
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")
        sizes = (ctypes.c_int64 * len(shape))(*shape) if shape is not None else None
        steps = (ctypes.c_int64 * len(strides))(*strides) if strides is not None else None
        tensor = DlTensor(address, kind, 0, ndim, 2, 32, 1, sizes, steps, 16)
        self.deleter = DELETER(self.delete)
        self.managed = New(major, 1, None, self.deleter, flags, tensor) if versioned else Old(tensor, None, self.deleter)
        self.destructor = DESTRUCTOR(self.destroy)

    def delete(self, _):
        self.deleted += 1

    def destroy(self, capsule):
        # As the format asks: a capsule that was taken over has another name.
        if capsule_is(capsule, self.name):
            self.managed.deleter(ctypes.addressof(self.managed))

    def __dlpack_device__(self):
        return (self.said, 0)

    def __dlpack__(self, *, stream=None, **more):
        if more and not self.versioned:
            raise TypeError("unexpected keyword")
        self.asked.append((stream, more))
        return new_capsule(ctypes.addressof(self.managed), self.name, self.destructor)


def arrays_by_dlpack_are_given_back():
    parameters(8)
    kernel = cache.get_function("", "one", 'extern "C" __global__ void one(float* x) {}')
    for versioned in (True, False):
        for stream, told in ((None, 1), (0x30, 0x30)):
            good = Producer(versioned)
            lines = noted(lambda: kernel[1, 1](good, stream=stream))
            assert lines[-1].endswith(" " + hexed("Q", 0x7F0000000010)), lines
            assert good.deleted == 1 and good.asked == [(told, {"max_version": (1, 1)} if versioned else {})], good.asked
    run = lambda given: lambda: warpcc_rtc.unary("relu", *given, cache=cache)
    # Read-only is no reason not to be read.
    parameters(8, 8, 4, 4)
    source, out = Producer(flags=1), Producer(address=0x7F0000100000)
    assert noted(run((source, out)))[-1].startswith("launch") and (source.deleted, out.deleted) == (1, 1)
    for wrong, *words in (
        (Producer(kind=1), "on the CPU"),
        (Producer(kind=3), "pinned memory"),
        (Producer(kind=1, said=2), "on the CPU"),
        (Producer(False, kind=1, said=2), "on the CPU"),
        (Producer(major=2), "DLPack 2.1", "1.x"),
        (Producer(ndim=65), "65 dimensions"),
        (Producer(ndim=-1), "-1 dimensions"),
        (Producer(shape=None), "no shape"),
        (Producer(shape=(-4,)), "negative"),
        (Producer(name=b"used_dltensor"), "used already"),
    ):
        good = Producer()
        raises(warpcc_rtc.ArgumentError, run((wrong, good)), "x: ", *words)
        assert wrong.deleted == len(wrong.asked) and good.deleted == len(good.asked), (words, wrong.deleted)
        wrong.deleted, wrong.asked = 0, []
        raises(warpcc_rtc.ArgumentError, run((good, wrong)), "out: ", *words)
        assert wrong.deleted == len(wrong.asked) and good.deleted == len(good.asked), (words, wrong.deleted)
    for flags, word in ((1, "read-only"), (2, "a copy of it")):
        wrong = Producer(flags=flags)
        raises(warpcc_rtc.ArgumentError, run((Producer(), wrong)), "out: ", word)
        assert wrong.deleted == 1


class Table(ctypes.Structure):
    """DLPackExchangeAPI, as dlpack.h 1.3 has it."""


TO_TENSOR = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlTensor))
TO_MANAGED = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
CURRENT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
Table._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.POINTER(Table)), ("allocate", ctypes.c_void_p),
    ("to_managed", ctypes.c_void_p), ("from_managed", ctypes.c_void_p), ("to_tensor", ctypes.c_void_p), ("current", ctypes.c_void_p),
]
kept = []


def exchanging(major=1, previous=None, to_managed=None, stream=0xA0, refuses=0, name=b"dlpack_exchange_api", lends=False, to_tensor=None):
    """A class of arrays with such a table, whose arrays are of one GPU's framework that works on `stream`."""

    class Tensor(Producer):
        handed = lent = 0

    def lend(tensor, out):
        tensor.lent += 1
        out[0] = tensor.managed.tensor
        return 0

    def hand_over(tensor, out):
        tensor.handed += 1
        out[0] = ctypes.addressof(tensor.managed)
        return 0

    def current(kind, number, out):
        assert number == 0, (kind, number)
        out[0] = stream
        return refuses

    functions = TO_MANAGED(hand_over), CURRENT(current), TO_TENSOR(lend)
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    older = ctypes.pointer(previous) if previous else None
    Tensor.table = Table(major, 3, older, None, to_managed or addresses[0], None, to_tensor or (addresses[2] if lends else None), addresses[1])
    # A table stays as long as the process.
    kept.append((functions, Tensor.table))
    Tensor.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(Tensor.table), name, DESTRUCTOR())
    return Tensor


def arrays_are_described_by_their_frameworks_functions():
    parameters(8)
    kernel = cache.get_function("", "one", 'extern "C" __global__ void one(float* x) {}')
    in_c = lambda given: (given.asked, given.deleted) == ([], given.handed) and given.handed > 0
    in_python = lambda given: len(given.asked) == 1 and given.deleted == given.handed + 1
    Tensor = exchanging()
    x = Tensor()
    lines = noted(lambda: kernel[1, 1](x))
    assert lines[-1].endswith(" stream 0xa0 " + hexed("Q", 0x7F0000000010)) and in_c(x), (lines, x.asked, x.deleted, x.handed)
    # On another stream, which then waits for its framework's.
    lines = noted(lambda: kernel[1, 1](x, stream=0x30))
    assert lines[:2] == ["record 0xa0", "wait 0x30"] and " stream 0x30 " in lines[-1] and in_c(x), lines
    # Not every array has to be of that framework; its stream is that of the first that has one.
    parameters(8, 8, 8, 4, 4)
    y, z = Tensor(), Producer(address=0x7F0000100000)
    lines = noted(lambda: warpcc_rtc.binary("add", Array(), y, z, cache=cache))
    assert " stream 0xa0 " in lines[-1] and in_c(y) and z.asked[0][0] == 0xA0, (lines, z.asked)
    run = lambda source, out: lambda: warpcc_rtc.unary("relu", source, out, cache=cache)
    parameters(8, 8, 4, 4)
    for flags, word in ((1, "read-only"), (2, "a copy of it")):
        out = Tensor(flags=flags)
        raises(warpcc_rtc.ArgumentError, run(Tensor(), out), "out: ", word)
        assert in_c(out)
    assert noted(run(Tensor(flags=1), Tensor(address=0x7F0000100000)))[-1].startswith("launch")
    host = Tensor(kind=3, said=2)
    raises(warpcc_rtc.ArgumentError, run(host, Tensor()), "x: ", "pinned memory")
    # A class that says it in a way of its own is asked in that way, and a plain one in its base's.
    Tensor = exchanging()

    class Own(Tensor):
        def __dlpack__(self, **more):
            return super().__dlpack__(**more)

    class Same(Tensor):
        pass

    parameters(8)
    for kind, is_right in ((Own, in_python), (Same, in_c)):
        given = kind()
        noted(lambda: kernel[1, 1](given))
        assert is_right(given), (kind, given.asked, given.deleted, given.handed)
    # What the table does not tell, or not so that it is understood, `__dlpack__` tells, or why it will not.
    older = exchanging(stream=0xB0).table
    always_an_error = ctypes.cast(api.PyList_Append, ctypes.c_void_p).value
    for kind in (
        exchanging(major=2), exchanging(to_managed=always_an_error), exchanging(to_tensor=always_an_error), exchanging(refuses=-1), exchanging(name=b"another"),
        type("Numbered", (Producer,), {"__dlpack_c_exchange_api__": 4096, "handed": 0}),
        type("Recording", (Tensor,), {"requires_grad": True}),
    ):
        given = kind()
        lines = noted(lambda: kernel[1, 1](given, stream=0x30))
        assert lines[-1].endswith(" stream 0x30 " + hexed("Q", 0x7F0000000010)) and in_python(given), (kind, lines, given.asked)
    odd = exchanging()(ndim=65)
    raises(warpcc_rtc.ArgumentError, lambda: kernel[1, 1](odd), "65 dimensions")
    assert odd.deleted == odd.handed + len(odd.asked)
    given = exchanging(major=2, previous=older)()
    lines = noted(lambda: kernel[1, 1](given))
    assert " stream 0xb0 " in lines[-1] and given.asked == [], lines


def what_is_read_is_lent_and_what_is_written_handed_over():
    Tensor = exchanging(lends=True)
    parameters(8)
    kernel = cache.get_function("", "one", 'extern "C" __global__ void one(float* x) {}')
    used = lambda given: (given.lent, given.handed, given.deleted, given.asked)
    x = Tensor()
    lines = noted(lambda: kernel[1, 1](x))
    assert lines[-1].endswith(" stream 0xa0 " + hexed("Q", 0x7F0000000010)) and used(x) == (1, 0, 0, []), (lines, used(x))
    parameters(8, 8, 4, 4)
    x, out = Tensor(flags=1), Tensor(address=0x7F0000100000)
    lines = noted(lambda: warpcc_rtc.unary("relu", x, out, cache=cache, stream=0x30))
    assert lines[:2] == ["record 0xa0", "wait 0x30"] and " stream 0x30 " in lines[-1], lines
    assert (used(x), used(out)) == ((1, 0, 0, []), (0, 1, 1, [])), (used(x), used(out))
    for wrong, *words in ((Tensor(ndim=65), "65 dimensions"), (Tensor(shape=(-4,)), "negative"), (Tensor(kind=3, said=2), "pinned memory")):
        raises(warpcc_rtc.ArgumentError, lambda: warpcc_rtc.unary("relu", wrong, out, cache=cache), "x: ", *words)
    # PyTorch's imaginary parts of what is conjugated: DLPack does not say that their sign is the other one.
    for kind in (Tensor, exchanging(), Producer):
        negated = type("Negated", (kind,), {"is_neg": lambda self: True})
        for given in ({"strides": (2,)}, {"shape": (), "ndim": 0}, {"shape": (4, 1), "ndim": 2, "strides": (2, 1)}):
            run = lambda x: lambda: warpcc_rtc.unary("relu", x, Tensor(shape=given.get("shape", (4,)), ndim=given.get("ndim", 1)), cache=cache)
            raises(warpcc_rtc.ArgumentError, run(negated(**given)), "x: ", "resolve_neg()")


def results_are_arrays_of_the_first_ones_framework():
    """With a stand-in for PyTorch, which says how it was asked."""
    made = []
    Tensor = exchanging(lends=True)
    Tensor.__module__ = "torch"
    Tensor.device = "the first GPU"

    def new(shape, **how):
        made.append((shape, how))
        return Tensor(address=0x7F0000100000, shape=shape, ndim=len(shape))

    torch = types.ModuleType("torch")
    torch.Tensor, torch.float32, torch.bool, torch.int16 = Tensor, "float32", "bool", "int16"
    parameters(8, 8)
    torch.empty, torch.empty_like = new, lambda like: new((4,), like=like)
    sys.modules["torch"] = torch
    try:
        Derived = type("Derived", (Tensor,), {})
        x, said = Tensor(), {"dtype": "float32", "device": "the first GPU"}
        for run, shape, how in (
            (lambda: warpcc_rtc.unary("relu", x, cache=cache), (4,), {"like": x}),
            (lambda: warpcc_rtc.fused("a * x", a=2.0, x=x, cache=cache), (4,), {"like": x}),
            (lambda: warpcc_rtc.unary("relu", Tensor(strides=(2,)), cache=cache), (4,), said),
            (lambda: warpcc_rtc.unary("relu", Derived(), cache=cache), (4,), said),
            (lambda: warpcc_rtc.unary("isnan", x, cache=cache), (4,), {**said, "dtype": "bool"}),
            (lambda: warpcc_rtc.binary("add", x, Tensor(shape=(3, 1), ndim=2), cache=cache), (3, 4), said),
            (lambda: warpcc_rtc.ops.exp(x, dtype=numpy.int16, cache=cache), (4,), {**said, "dtype": "int16"}),
            (lambda: warpcc_rtc.reduce("sum", x, cache=cache), (), said),
            (lambda: warpcc_rtc.reduce("sum", x, 0, keepdims=True, cache=cache), (1,), said),
        ):
            made.clear()
            results = []
            lines = noted(lambda: results.append(run()))
            assert made == [(shape, how)] and isinstance(results[0], Tensor) and lines[-1].startswith("launch"), (made, shape, how, lines)
        raises(warpcc_rtc.ArgumentError, lambda: warpcc_rtc.unary("relu", x, add=True, cache=cache), "out: adding")
        raises(warpcc_rtc.ArgumentError, lambda: warpcc_rtc.unary("relu", 1.0, cache=cache), "out: ", "numbers alone")
        raises(TypeError, lambda: warpcc_rtc.reduce("sum", 1.0, cache=cache), "x: a number")
    finally:
        del sys.modules["torch"]


def functions_are_called_like_ufuncs():
    x, y, out = (Array(0x7F0000000000 + place * 0x100000) for place in range(3))
    ops = warpcc_rtc.ops
    same = (
        (lambda: ops.maximum(x, y, out=out, cache=cache), lambda: warpcc_rtc.binary("max", x, y, out, cache=cache)),
        (lambda: ops.maximum(x, y, out, cache=cache), lambda: warpcc_rtc.binary("max", x, y, out, cache=cache)),
        (lambda: ops.round(x, out=out, cache=cache), lambda: warpcc_rtc.unary("rint", x, out, cache=cache)),
        (lambda: ops.relu(x=x, out=out, add=True, stream=0x30, cache=cache), lambda: warpcc_rtc.unary("relu", x, out, add=True, stream=0x30, cache=cache)),
        (lambda: ops.elu(x, alpha=0.5, out=out, cache=cache), lambda: warpcc_rtc.binary("elu", x, 0.5, out, cache=cache)),
        (lambda: ops.hardtanh(x, max_val=2, out=out, cache=cache), lambda: warpcc_rtc.fused("clip(x, y, z)", x=x, y=-1, z=2, out=out, cache=cache)),
        (lambda: warpcc_rtc.reduce("amax", x, out=Array(out.address, shape=()), cache=cache), lambda: warpcc_rtc.reduce("max", x, out=Array(out.address, shape=()), cache=cache)),
    )
    for named, plain in same:
        named()  # Its kernel is compiled and loaded: another one would be made now.
        made = cache.counts["made"]
        assert noted(named) == noted(plain) != [], (noted(named), noted(plain))
        assert cache.counts["made"] == made
    mask = Array(0x7F0000300000, typestr="|b1")
    assert noted(lambda: ops.exp(x, out=out, where=mask, cache=cache))[-1].startswith("launch")
    refused = (
        (TypeError, lambda: ops.elu(cache=cache), "elu(x, alpha=1.0", "missing: x"),
        (TypeError, lambda: ops.elu(x, beta=1, cache=cache), "beta is no argument"),
        (TypeError, lambda: ops.elu(x, x=x, cache=cache), "x is given twice"),
        (TypeError, lambda: ops.relu(x, y, out, cache=cache), "3 given in order"),
        (AttributeError, lambda: ops.maxinum, "maxinum"),
        (warpcc_rtc.ArgumentError, lambda: ops.exp(x, where=mask, cache=cache), "where: it needs out"),
        (warpcc_rtc.ArgumentError, lambda: ops.exp(x, where=mask, out=Array(out.address, typestr="<i8"), cache=cache), "out is int64"),
        (warpcc_rtc.ArgumentError, lambda: ops.exp(x, out=out, dtype="float16", cache=cache), "dtype: out has a type"),
        (warpcc_rtc.ArgumentError, lambda: ops.exp(x, dtype="float33", cache=cache), "dtype: float33"),
    )
    for kind, run, *words in refused:
        raises(kind, run, *words)


def no_array_of_numpys_leaks():
    host = numpy.zeros(1 << 16, dtype=numpy.float32)
    before = sys.getrefcount(host)
    for _ in range(100):
        raises(warpcc_rtc.ArgumentError, lambda: warpcc_rtc.unary("relu", host, Array(), cache=cache), "x: it is on the CPU")
    assert sys.getrefcount(host) == before


for test in (
    arrays_by_dlpack_are_given_back,
    arrays_are_described_by_their_frameworks_functions,
    what_is_read_is_lent_and_what_is_written_handed_over,
    results_are_arrays_of_the_first_ones_framework,
    no_array_of_numpys_leaks,
    functions_are_called_like_ufuncs,
    what_a_driver_refuses_is_told_and_the_context_goes_on,
    errors_name_the_file_of_a_kernel,
    a_kernel_gets_its_arguments,
    what_does_not_fit_is_not_launched,
    streams_are_those_of_the_arrays_makers,
    gpus_are_those_of_the_arrays,
):
    print(test.__name__, flush=True)
    test()
