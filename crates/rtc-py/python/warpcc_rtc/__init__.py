"""CUDA kernels as text: compiled once, kept for every process and machine, launched on your arrays.

>>> import torch, warpcc_rtc
>>> x = torch.randn(1 << 20, device="cuda")
>>> y = warpcc_rtc.fused("relu(a * x + b)", a=2.0, x=x, b=x)
>>> cache = warpcc_rtc.KernelCache()
>>> scale = cache.get_function("", "scale<float>", "template<class T> __global__ void scale(T* x, T by) { ... }")
>>> scale[x.numel() // 256, 256](x, 2.0)

Compiling needs no GPU. Nothing of NVIDIA's is linked: NVRTC is found when it is first needed.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _workers
from ._errors import (
    ArgumentError,
    CompileError,
    DeadlineError,
    Error,
    LaunchError,
    LibraryError,
    LinkError,
    LoadError,
)
from ._native import Event, Function, Image, Why, __version__, compile_many as _compile_many, why as _why
from ._native import KernelCache as _KernelCache, function as _function, fused as _fused, reduce as _reduce

__all__ = [
    "ArgumentError",
    "CompileError",
    "DeadlineError",
    "Error",
    "Event",
    "Function",
    "Image",
    "KernelCache",
    "LaunchError",
    "LibraryError",
    "LinkError",
    "LoadError",
    "Why",
    "__version__",
    "binary",
    "compile",
    "compile_many",
    "default_cache",
    "fused",
    "get_function",
    "link",
    "load_ptx",
    "reduce",
    "unary",
]

#: How long the end of the process waits for uploads to shared caches, in seconds. What is not done then waits in the folder.
SETTLE_SECONDS = 5.0

_caches: "weakref.WeakSet[KernelCache]" = weakref.WeakSet()
_default: Optional["KernelCache"] = None
_default_lock = threading.Lock()


class KernelCache(_KernelCache):
    """Compiled kernels in memory, in folders, and in the shared caches behind them. Any thread may use it.

    Arguments, all optional:
        folders: absolute paths, nearest first; none given: those of the environment (docs/rtc.md, WARPCC_RTC_CACHE);
            an empty list: memory only.
        max_size: bytes to keep in each folder; 0 for no limit.
        memory: bytes of images to keep in memory.
        remote: the shared caches, as WARPCC_REMOTE names them; "none" for none; none given: what WARPCC_REMOTE or
            the settings file says.
        nvrtc, nvjitlink: the library, a file or its folder; none given: found as docs/rtc.md says.
        packs: files of ``warpcc rtc warm --pack``, or folders, that are only read; none given: those that installed packages
            bring (entry points of the group ``warpcc_rtc.packs``); an empty list: none.
        options, include, headers, preamble: what every kernel is compiled with: NVRTC's options, folders to look for headers
            in, headers and texts before the parameters as dicts of names and texts.

    Raises LibraryError without NVRTC. Trouble with the cache is no error: see ``remarks``.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "KernelCache":
        remarks: List[str] = []
        if kwargs.get("packs") is None:
            from . import _packs

            kwargs["packs"], remarks = _packs.installed()
        made = super().__new__(cls, *args, **kwargs)
        for remark in remarks:
            made._remark(remark)
        _caches.add(made)
        return made

    def compile_many(
        self,
        kernels: Sequence[Dict[str, Any]],
        *,
        threads: int = 0,
        progress: Optional[Callable[[int, int, str, Union[Image, Error], float], Any]] = None,
        timeout: Optional[float] = None,
        return_exceptions: bool = False,
        processes: bool = True,
    ) -> List[Any]:
        """Compiles many kernels, or finds them, and gives an Image for each, in order.

        Each is a dict of the arguments of ``compile``. They are compiled by several threads, no more at a time than this
        machine has room for in all processes of this user together. Where several processes ask for the same kernels, each
        is compiled once.

        If many have to be compiled, other processes of this Python compile too, because NVRTC's threads wait for each other.
        They have the same NVRTC, environment and working directory, import none of your modules, and end with this call. If
        one fails, its kernel is compiled here, and ``remarks`` says so. With ``processes=False`` no process is started.

        ``progress`` is called for each one that is done, by this thread, with: how many are done, how many there are, the
        kernel's name, its Image or exception, and the seconds it took. If it raises, the rest is cancelled. A kernel that
        does not compile does not stop the others; the first exception is raised at the end, or with ``return_exceptions``
        stands in the list.
        """
        worker = _workers.command() if processes else None
        done = _compile_many(self, [_asked(each) for each in kernels], threads, progress, timeout, worker)
        if not return_exceptions:
            for each in done:
                if isinstance(each, BaseException):
                    raise each
        return done

    def why(self, source: str, name: str, arch: Optional[str] = None, **how: Any) -> Why:
        """Whether ``compile`` with these arguments would find the kernel in a folder or a pack, and if not, in what it differs
        from the most similar one of its name that was compiled lately. Compiles nothing, and asks no shared cache."""
        return _why(self, _asked({"source": source, "name": name, "arch": arch, **how}))


#: The arguments of ``compile`` and what they are where they are not given.
_OF_COMPILE: Dict[str, Any] = {
    "source": None,
    "name": None,
    "arch": None,
    "names": (),
    "parameters": "",
    "options": (),
    "include": (),
    "headers": None,
    "file": None,
}


def _asked(kernel: Dict[str, Any]) -> Dict[str, Any]:
    unknown = [name for name in kernel if name not in _OF_COMPILE]
    missing = [name for name in ("source", "name") if kernel.get(name) is None]
    if unknown or missing:
        raise ArgumentError(
            f"kernels: a dict with source and name, and perhaps {', '.join(list(_OF_COMPILE)[2:])} was expected; "
            f"unknown: {', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}"
        )
    return {**_OF_COMPILE, **kernel}


@atexit.register
def _settle() -> None:
    for cache in list(_caches):
        cache._settle(SETTLE_SECONDS)


def default_cache() -> KernelCache:
    """The cache that the functions of this module use where none is given: made once, by the environment."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = KernelCache()
    return _default


def compile(source: str, name: str, arch: Optional[str] = None, **how: Any) -> Image:
    """``KernelCache.compile`` of the default cache."""
    return default_cache().compile(source, name, arch, **how)


def compile_many(kernels: Sequence[Dict[str, Any]], **how: Any) -> List[Any]:
    """``KernelCache.compile_many`` of the default cache."""
    return default_cache().compile_many(kernels, **how)


def get_function(parameters: str, name: str, source: str, device: Any = None, **how: Any) -> Function:
    """``KernelCache.get_function`` of the default cache."""
    return default_cache().get_function(parameters, name, source, device, **how)


def link(pieces: Sequence[Any], arch: str, **how: Any) -> Image:
    """``KernelCache.link`` of the default cache."""
    return default_cache().link(pieces, arch, **how)


def load_ptx(ptx: Union[str, bytes], arch: Optional[str] = None, **how: Any) -> Image:
    """``KernelCache.load_ptx`` of the default cache."""
    return default_cache().load_ptx(ptx, arch, **how)


def unary(function: str, x: Any, out: Any = None, *, add: bool = False, stream: Any = None, cache: Optional[KernelCache] = None) -> Any:
    """A function of one array (docs/kernels.md has all): ``unary("gelu", x)``.

    ``out`` is written, or with ``add`` added to; without one the result is an array of x's framework. Work is put on
    ``stream``, else on the current one of x's framework, and not waited for.
    """
    return _function(default_cache() if cache is None else cache, function, (x,), out, add, stream)


def binary(function: str, x: Any, y: Any, out: Any = None, *, add: bool = False, stream: Any = None, cache: Optional[KernelCache] = None) -> Any:
    """A function of two arrays, or of an array and a number, broadcast by NumPy's rules: ``binary("hypot", x, y)``."""
    return _function(default_cache() if cache is None else cache, function, (x, y), out, add, stream)


def fused(expression: str, /, *, out: Any = None, add: bool = False, stream: Any = None, cache: Optional[KernelCache] = None, **values: Any) -> Any:
    """An expression over arrays and numbers as one kernel: ``fused("relu(a * x + b)", a=2.0, x=x, b=b)``.

    Names that are arguments here (out, add, stream, cache) cannot be the expression's.
    """
    return _fused(default_cache() if cache is None else cache, expression, values, out, add, stream)


def reduce(
    reduction: str,
    x: Any,
    axis: Union[None, int, Sequence[int]] = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    add: bool = False,
    stream: Any = None,
    cache: Optional[KernelCache] = None,
) -> Any:
    """A reduction over one axis, several, or all: ``reduce("sum", x, axis=-1)``."""
    axes = None if axis is None else [axis] if isinstance(axis, int) else [int(each) for each in axis]
    return _reduce(default_cache() if cache is None else cache, reduction, x, axes, keepdims, out, add, stream)
