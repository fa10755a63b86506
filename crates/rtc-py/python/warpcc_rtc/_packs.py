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

_Found = Tuple[List[str], List[str]]

_found: Optional[_Found] = None
_looking = threading.local()


def installed() -> _Found:
    """The packs of all installed packages, and what is wrong with those that cannot be found. Looked for once.

    Code of other packages may run meanwhile, and may open a cache itself: that one gets none of these packs. No lock is held, because
    such code waits for locks of its own, as an import does. If two threads look at the same time, they find the same.
    """
    global _found
    if _found is None:
        if getattr(_looking, "now", False):
            return [], []
        _looking.now = True
        try:
            _found = _look()
        finally:
            _looking.now = False
    return _found


def _look() -> _Found:
    packs: List[str] = []
    remarks: List[str] = []
    try:
        points: Iterable[Any] = metadata.entry_points()
        # Python 3.9 gives a dict.
        points = points.select(group=GROUP) if hasattr(points, "select") else points.get(GROUP, ())  # type: ignore[attr-defined]
        points = sorted(points, key=lambda point: (point.name, point.value))
    except Exception as error:  # Other packages' metadata may be anything.
        return [], [f"packs of installed packages were not looked for: {_text_of(error)}"]
    for point in points:
        try:
            found = _packs_of(point)
        except (Exception, SystemExit) as error:  # Their code may do anything.
            remarks.append(f"the packs of {point.name} ({point.value}) are not used: {_text_of(error)}")
            continue
        if not found:
            remarks.append(f"the packs of {point.name} ({point.value}) are not used: there is no {PATTERN} in that package")
        packs.extend(path for path in found if path not in packs)
    return packs, remarks


def _text_of(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # Its text is made by their code too.
        return type(error).__name__


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
