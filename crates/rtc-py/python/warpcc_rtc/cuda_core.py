"""cuda.core with this package's cache.

>>> from cuda.core import Program, ProgramOptions
>>> import warpcc_rtc.cuda_core
>>> cache = warpcc_rtc.cuda_core.ProgramCache()
>>> Program(source, "c++", ProgramOptions(arch="sm_90")).compile("cubin", cache=cache)

``Program.compile`` refuses a cache together with include folders or name expressions, whose files and names it does not
keep. ``compile`` here takes both, and compiles once where several processes ask at once.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import cuda.core
from cuda.core import ObjectCode, Program, ProgramOptions

try:
    from cuda.core.utils import ProgramCacheResource
except ImportError as error:
    raise ImportError(
        f"cuda.core {cuda.core.__version__} has no ProgramCacheResource: install cuda-core 1.0 or newer"
    ) from error

from cuda.bindings import nvrtc

from . import KernelCache, default_cache
from ._native import find_product, forget_product, keep_product
from ._products import Unknown, get_or_make, libraries, part

__all__ = ["ProgramCache", "compile"]

#: The folder in each folder of the cache, so that ``len`` and ``clear`` concern cuda.core's programs alone.
FOLDER = "cuda-core"


def _bytes_of(key: object, what: str) -> bytes:
    if isinstance(key, str):
        return key.encode("utf-8")
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    raise TypeError(f"cache {what} must be bytes or str, got {type(key).__name__}")


def _load() -> None:
    """Has cuda.core's NVRTC loaded, so that this package takes the same."""
    nvrtc.nvrtcVersion()


class ProgramCache(ProgramCacheResource):
    """A ``ProgramCacheResource``: compiled programs in the folders, shared caches and packs of this package.

    Without ``cache`` it is in the folder ``cuda-core`` below each of the default cache's, so that ``len`` and ``clear``
    concern nothing else. A ``KernelCache`` that is given is used as it is, and ``clear`` empties it. An entry may be gone at
    any time, as another process may need its room; and what is empty is not kept.
    """

    def __init__(self, cache: Optional[KernelCache] = None) -> None:
        if cache is None:
            _load()
            cache = KernelCache([f"{folder}/{FOLDER}" for folder in default_cache().folders])
        self.cache = cache

    def _parts(self, key: object) -> List[Tuple[str, bytes]]:
        return [("cuda.core's key", _bytes_of(key, "keys"))]

    def __getitem__(self, key: "bytes | str") -> bytes:
        image = find_product(self.cache, "a program of cuda.core", self._parts(key), [])
        if image is None:
            raise KeyError(key)
        return image.image

    def __setitem__(self, key: "bytes | str", value: Any) -> None:
        parts = self._parts(key)
        if isinstance(value, ObjectCode):
            value = value.code
            if isinstance(value, str):
                with open(value, "rb") as file:
                    value = file.read()
        elif not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"cache values must be bytes-like or ObjectCode, got {type(value).__name__}")
        keep_product(self.cache, "a program of cuda.core", parts, [], bytes(value))

    def __delitem__(self, key: "bytes | str") -> None:
        if not forget_product(self.cache, "a program of cuda.core", self._parts(key), []):
            raise KeyError(key)

    def __len__(self) -> int:
        return self.cache.stored()

    def clear(self) -> None:
        """Removes every entry from memory and from the folders; shared caches and packs keep theirs."""
        self.cache.clear()

    def __repr__(self) -> str:
        return f"<warpcc_rtc.cuda_core.ProgramCache in [{', '.join(self.cache.folders)}]>"


_MAKE = {"cubin": ObjectCode.from_cubin, "ptx": ObjectCode.from_ptx, "ltoir": ObjectCode.from_ltoir}


def compile(
    code: str,
    target_type: str,
    options: Optional[ProgramOptions] = None,
    name_expressions: Sequence[str] = (),
    logs: Any = None,
    *,
    cache: Optional[KernelCache] = None,
) -> ObjectCode:
    """``Program(code, "c++", options).compile(target_type, name_expressions, logs)``, through the cache.

    Every file that the program may include is part of what is looked up. Where that cannot be known, it is compiled
    without the cache.
    """
    options = ProgramOptions() if options is None else options
    target_type = str(target_type)

    def fresh(log: Any) -> ObjectCode:
        return Program(code, "c++", options).compile(target_type, name_expressions, log)

    if target_type not in _MAKE:
        return fresh(logs)
    try:
        _load()
        files = libraries("nvrtc")
        words = [word.decode("utf-8", "surrogateescape") for word in options.as_bytes("nvrtc", target_type)]
    except (Unknown, AttributeError):
        return fresh(logs)
    name = options.name or "default_program"
    parts = [
        part("who", "cuda.core.compile"),
        part("cuda.core", cuda.core.__version__),
        part("target", target_type),
        part("name", name),
        *(part("name expression", each) for each in name_expressions),
    ]

    class Log:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

    def make() -> Tuple[bytes, Any, str]:
        log = Log()
        made = fresh(log)
        return bytes(made.code), {str(k): _text(v) for k, v in (made.symbol_mapping or {}).items()}, log.text

    folder = [name.rpartition("/")[0]] if "/" in name else []
    image = get_or_make(cache, name, parts, files, make, source=code, options=words, folders=folder)
    if logs is not None and image.log:
        logs.write(image.log)
    # As NVRTC gives them to cuda.core: names of kernels are text, names in the image are bytes.
    names = {each: lowered.encode() for each, lowered in image.lowered.items()}
    return _MAKE[target_type](image.image, name=name, symbol_mapping=names)


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
