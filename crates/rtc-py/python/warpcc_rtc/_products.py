"""What the adapters share: results of other packages' compilers in a cache of this package."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from . import KernelCache, default_cache
from ._native import Image, get_product

Parts = Sequence[Tuple[str, bytes]]

#: Libraries of NVIDIA's that compile, and what belongs to each: the beginnings of the files' names.
_TOGETHER = {
    "nvrtc": ("libnvrtc.so", "libnvrtc-builtins.so"),
    "nvjitlink": ("libnvJitLink.so",),
    "nvvm": ("libnvvm.so",),
}


class Unknown(Exception):
    """What would be compiled with cannot be known, so nothing may be kept."""


def libraries(which: str) -> List[str]:
    """The files of a library that this process has loaded, in an order that is the same in every process."""
    first, *others = _TOGETHER[which]
    loaded = set()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[5:]
            if path and os.path.basename(path[0]).startswith(first):
                loaded.add(path[0])
    if not loaded:
        raise Unknown(f"{first} is not loaded")
    found = sorted(os.path.realpath(path) for path in loaded)
    # Of several that are loaded any may be the one that compiles: all count.
    for folder in sorted({os.path.dirname(path) for path in found}):
        for other in others:
            # Loaded when it is first needed, so that only some processes have it.
            found_here = [name for name in os.listdir(folder) if name.startswith(other)]
            if not found_here:
                raise Unknown(f"there is no {other} in {folder}")
            found.extend(sorted({os.path.realpath(os.path.join(folder, name)) for name in found_here}))
    return found


def part(label: str, value: Any) -> Tuple[str, bytes]:
    """A part of a key, of text, bytes, or what ``repr`` tells apart."""
    if isinstance(value, bytes):
        return label, value
    return label, (value if isinstance(value, str) else repr(value)).encode("utf-8", "surrogatepass")


def get_or_make(
    cache: Optional[KernelCache],
    name: str,
    parts: Parts,
    files: Iterable[str],
    make: Callable[[], Tuple[bytes, Optional[Dict[str, str]], str]],
    *,
    source: Optional[str] = None,
    options: Sequence[str] = (),
    folders: Sequence[str] = (),
) -> Image:
    """What ``make`` gave somebody, or gives now: once, in all threads and processes that ask. With ``source``, the files
    that it may include count, as NVRTC would find them with ``options`` and from ``folders``."""
    cache = default_cache() if cache is None else cache
    return get_product(
        cache, name, list(parts), list(files), make, source=source, options=list(options), folders=list(folders)
    )
