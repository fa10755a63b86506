"""Packs of ready-made kernels that installed packages bring: found through their entry points, read only when asked."""

from __future__ import annotations

import importlib.util
import threading
from importlib import metadata
from pathlib import Path
from typing import Any, Iterable, List, Optional, Tuple

#: The group of the entry points.
GROUP = "warpcc_rtc.packs"
#: What a pack in a package's folder is called.
PATTERN = "*.warpcc-pack"

_found: Optional[Tuple[List[str], List[str]]] = None
_lock = threading.Lock()


def installed() -> Tuple[List[str], List[str]]:
    """The packs of all installed packages, and what is wrong with those that cannot be found. Looked for once."""
    global _found
    with _lock:
        if _found is None:
            _found = _look()
        return _found


def _look() -> Tuple[List[str], List[str]]:
    packs: List[str] = []
    remarks: List[str] = []
    try:
        points: Iterable[Any] = metadata.entry_points()
        # Python 3.9 gives a dict.
        points = points.select(group=GROUP) if hasattr(points, "select") else points.get(GROUP, ())  # type: ignore[attr-defined]
        points = sorted(points, key=lambda point: (point.name, point.value))
    except Exception as error:  # Other packages' metadata may be anything.
        return [], [f"packs of installed packages were not looked for: {error}"]
    for point in points:
        try:
            found = _packs_of(point)
        except Exception as error:  # Their code may do anything.
            remarks.append(f"the packs of {point.name} ({point.value}) are not used: {type(error).__name__}: {error}")
            continue
        if not found:
            remarks.append(f"the packs of {point.name} ({point.value}) are not used: there is no {PATTERN} in that package")
        packs.extend(path for path in found if path not in packs)
    return packs, remarks


def _packs_of(point: Any) -> List[str]:
    module, _, attribute = point.value.partition(":")
    if not attribute:
        # A package's folder: nothing of it is imported but what it is in.
        spec = importlib.util.find_spec(module.strip())
        if spec is None:
            raise ModuleNotFoundError(module)
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        return [str(path) for folder in folders for path in sorted(folder.glob(PATTERN))]
    given = point.load()
    if callable(given):
        given = given()
    if isinstance(given, (str, Path)):
        given = [given]
    return [str(Path(path).absolute()) for path in given]
