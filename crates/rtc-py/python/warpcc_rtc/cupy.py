"""CuPy with this package's cache.

>>> import warpcc_rtc.cupy
>>> warpcc_rtc.cupy.install()

From then on whatever CuPy compiles with NVRTC (``RawKernel``, ``RawModule``, ``ElementwiseKernel``, ``@cupy.fuse`` and its own
kernels) is kept here, in place of ``~/.cupy/kernel_cache``: in folders that several processes may share, in shared caches and
packs. Of several processes one compiles. CuPy still calls NVRTC itself, so its results are those it always has.

CuPy's own cache does not notice that a header was edited. This one does: every file that a program may include is part of
what is looked up.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import cupy
from cupy.cuda import compiler

from . import KernelCache
from ._products import Unknown, get_or_make, libraries, part

__all__ = ["install", "uninstall"]

#: What is replaced; None where CuPy is as it was.
_before: Optional[Dict[str, Any]] = None
_cache: Optional[KernelCache] = None


class _Nowhere(compiler._KernelCacheBackend):  # type: ignore[misc]
    """CuPy's own cache, switched off: its key would hide an edited header."""

    def load(self, name: str) -> None:
        return None

    def save(self, name: str, cubin: bytes, source: str) -> None:
        return None


def install(cache: Optional[KernelCache] = None) -> None:
    """Has CuPy use ``cache``, or the default cache. Raises ImportError for a CuPy that this does not fit."""
    global _before, _cache
    needed = ("_compile_using_nvrtc_no_warning", "_set_kernel_cache_backend", "_get_arch_for_options_for_nvrtc", "_preprocess")
    missing = [name for name in needed if not hasattr(compiler, name)]
    if missing:
        raise ImportError(
            f"warpcc_rtc.cupy does not know CuPy {cupy.__version__}, which has no {', '.join(missing)} in "
            "cupy.cuda.compiler: CuPy 14 is known"
        )
    _cache = cache
    if _before is not None:
        return
    _before = {
        "_compile_using_nvrtc_no_warning": compiler._compile_using_nvrtc_no_warning,
        "_preprocess": compiler._preprocess,
        "_kernel_cache_backend": compiler._kernel_cache_backend,
    }
    compiler._compile_using_nvrtc_no_warning = _compile
    compiler._preprocess = _preprocess
    compiler._set_kernel_cache_backend(_Nowhere())


def uninstall() -> None:
    """Has CuPy do again what it did before."""
    global _before
    if _before is not None:
        for name, value in _before.items():
            setattr(compiler, name, value)
        _before = None


def _preprocess(source: str, options: Tuple[str, ...], arch: str, backend: str) -> str:
    """CuPy compiles an empty program to tell its compilers apart. Here their files do that."""
    if backend != "nvrtc" or source or _before is None:
        return _original("_preprocess")(source, options, arch, backend)
    return "told apart by warpcc_rtc"


def _original(name: str) -> Any:
    return compiler.__dict__[name] if _before is None else _before[name]


def _compile(
    source: str,
    options: Tuple[str, ...] = (),
    arch: Optional[str] = None,
    filename: str = "kern.cu",
    name_expressions: Any = None,
    log_stream: Any = None,
    cache_in_memory: bool = False,
    jitify: Any = None,
    method: Optional[str] = None,
) -> Tuple[bytes, Optional[Dict[str, str]]]:
    def fresh(log: Any) -> Tuple[bytes, Optional[Dict[str, str]]]:
        return _original("_compile_using_nvrtc_no_warning")(
            source, options, arch, filename, name_expressions, log, cache_in_memory, jitify, method
        )

    if jitify or compiler._use_pch or compiler.runtime.is_hip or isinstance(source, bytes):
        return fresh(log_stream)
    names = tuple(name_expressions or ())
    target = (f"-arch=compute_{arch}", method) if method else compiler._get_arch_for_options_for_nvrtc(arch)
    try:
        compiler._get_nvrtc_version()  # loads it
        files = libraries("nvrtc")
    except Unknown:
        return fresh(log_stream)
    parts = [
        part("who", "CuPy"),
        part("CuPy", cupy.__version__),
        *(part("target", word) for word in target),
        part("in memory", cache_in_memory),
        *(part("name expression", name) for name in names),
    ]

    class Log:
        text = ""

        def write(self, text: Any) -> None:
            self.text += text.decode("utf-8", "replace") if isinstance(text, bytes) else text

    def make() -> Tuple[bytes, Optional[Dict[str, str]], str]:
        log = Log()
        image, mapping = fresh(log)
        image = image if isinstance(image, bytes) else image.encode()
        return image, mapping, log.text

    shown = names[0] if names else filename
    image = get_or_make(_cache, shown, parts, files, make, source=source, options=options)
    if log_stream is not None and image.log:
        log_stream.write(image.log)
    # As CuPy has it: a mapping only where names were asked for.
    return image.image, dict(image.lowered) if names else None
