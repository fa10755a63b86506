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
from typing import Any, Optional, Sequence, Union

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
from ._native import Function, Image, __version__
from ._native import KernelCache as _KernelCache, function as _function, fused as _fused, reduce as _reduce

__all__ = [
    "ArgumentError",
    "CompileError",
    "DeadlineError",
    "Error",
    "Function",
    "Image",
    "KernelCache",
    "LaunchError",
    "LibraryError",
    "LinkError",
    "LoadError",
    "__version__",
    "binary",
    "compile",
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
        options, include, headers, preamble: what every kernel is compiled with: NVRTC's options, folders to look for headers
            in, headers and texts before the parameters as dicts of names and texts.

    Raises LibraryError without NVRTC. Trouble with the cache is no error: see ``remarks``.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "KernelCache":
        made = super().__new__(cls, *args, **kwargs)
        _caches.add(made)
        return made


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
