"""Numba-CUDA with this package's cache.

>>> import warpcc_rtc.numba
>>> warpcc_rtc.numba.install()

From then on what Numba's CUDA target (the package ``numba-cuda``) has compiled is kept here: LLVM IR to PTX or LTO-IR by NVVM,
C++ to PTX by NVRTC, and PTX or LTO-IR to machine code by nvJitLink. Python to LLVM IR is Numba's own part, and stays: its
``cache=True`` keeps that too, for one file of Python at a time.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numba_cuda
from cuda.core import ObjectCode
from numba.cuda.cudadrv import driver, nvrtc, nvvm

from . import KernelCache
from .cuda_core import compile as compile_program
from ._products import Unknown, get_or_make, libraries, part

__all__ = ["install", "uninstall"]

_before: Optional[Dict[str, Any]] = None
_cache: Optional[KernelCache] = None
_KINDS = {"ptx": ObjectCode.from_ptx, "ltoir": ObjectCode.from_ltoir, "cubin": ObjectCode.from_cubin}


def install(cache: Optional[KernelCache] = None) -> None:
    """Has Numba use ``cache``, or the default cache. Raises ImportError for a numba-cuda that this does not fit."""
    global _before, _cache
    if not hasattr(nvvm, "compile_ir") or not hasattr(nvrtc, "Program") or not hasattr(driver, "_Linker"):
        raise ImportError(
            f"warpcc_rtc.numba does not know numba-cuda {numba_cuda.__version__}, which has no nvvm.compile_ir, "
            "nvrtc.Program and driver._Linker: 0.30 is known"
        )
    _cache = cache
    if _before is not None:
        return
    _before = {"compile_ir": nvvm.compile_ir, "Program": nvrtc.Program, "complete": driver._Linker.complete}
    nvvm.compile_ir = _compile_ir
    nvrtc.Program = _Program
    driver._Linker.complete = _complete


def uninstall() -> None:
    """Has Numba do again what it did before."""
    global _before
    if _before is not None:
        nvvm.compile_ir = _before["compile_ir"]
        nvrtc.Program = _before["Program"]
        driver._Linker.complete = _before["complete"]
        _before = None


def _original(name: str) -> Any:
    now = {"compile_ir": nvvm.compile_ir, "Program": nvrtc.Program, "complete": driver._Linker.complete}
    return (now if _before is None else _before)[name]


def _parts(what: str) -> List[Tuple[str, bytes]]:
    return [part("who", f"Numba: {what}"), part("numba-cuda", numba_cuda.__version__)]


def _compile_ir(llvmir: Any, **options: Any) -> bytes:
    def fresh() -> bytes:
        return _original("compile_ir")(llvmir, **options)

    modules = [llvmir] if isinstance(llvmir, str) else list(llvmir)
    try:
        nvvm.NVVM()  # loads it
        files = libraries("nvvm")
        libdevice = nvvm.LibDevice().get()
    except (Unknown, OSError):
        return fresh()
    parts = _parts("NVVM")
    parts += [part("option", (key, value)) for key, value in options.items()]
    parts += [part("module", module) for module in modules]
    parts.append(part("libdevice", bytes(libdevice)))
    return get_or_make(_cache, "LLVM IR of Numba", parts, files, lambda: (fresh(), None, "")).image


class _Program:
    """A program of cuda.core's that compiles through the cache."""

    def __init__(self, code: str, code_type: str, options: Any = None) -> None:
        self._code, self._type, self._options = code, code_type, options

    def compile(self, target_type: str, name_expressions: Any = (), logs: Any = None) -> Any:
        if self._type != "c++":
            program = _original("Program")(self._code, self._type, self._options)
            return program.compile(target_type, name_expressions, logs)
        return compile_program(self._code, target_type, self._options, name_expressions, logs, cache=_cache)


def _linker_files() -> List[str]:
    """nvJitLink's file; nothing where the driver links, whose build is not known."""
    try:
        from cuda.bindings import nvjitlink
        from cuda.core._linker import _decide_nvjitlink_or_driver

        nvjitlink.version()  # loads it
        return [] if _decide_nvjitlink_or_driver() else libraries("nvjitlink")
    except Exception:  # It is missing in one of many ways.
        return []


def _complete(self: Any) -> Any:
    codes = list(self._object_codes)
    kinds = [code.code_type for code in codes]
    files = _linker_files()
    if not files or not all(isinstance(code.code, bytes) for code in codes):
        return _original("complete")(self)
    parts = _parts("nvJitLink")
    parts.append(part("options", self._get_linker_options(ptx=False)))
    for code, kind in zip(codes, kinds):
        parts += [part("kind", str(kind)), part("name", code.name), part("code", code.code)]
    made: List[Any] = []

    def make() -> Tuple[bytes, None, str]:
        made.append(_original("complete")(self))
        return bytes(made[0].code), None, self.info_log or ""

    image = get_or_make(_cache, "a kernel of Numba", parts, files, make)
    if made:
        return made[0]
    self._info_log, self._error_log = image.log, ""
    # Both are asked for whether there was a linker.
    self.linker, self._complete = True, True
    return ObjectCode.from_cubin(image.image)
