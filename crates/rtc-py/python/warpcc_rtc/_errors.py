"""What can go wrong, each with the library's own text: what failed, on what, and what to do."""

from __future__ import annotations

from typing import List, Optional


class Error(Exception):
    """Anything that warpcc_rtc reports."""


class ArgumentError(Error, ValueError):
    """An argument cannot be: the text says which, and what was expected. Nothing was launched."""


class LibraryError(Error):
    """NVRTC, nvJitLink or the driver is missing, or too old for what was asked; the text lists what was tried."""


class CompileError(Error):
    """A text does not compile.

    ``log`` is NVRTC's, whole; ``place`` the first error's place in the caller's text, where the log names one;
    ``name`` and ``target`` what was compiled and for what; ``options`` all that NVRTC was given; ``saved`` the file
    with the source as NVRTC saw it, where it could be saved.
    """

    def __init__(
        self,
        text: str,
        *,
        log: str = "",
        place: Optional[str] = None,
        name: str = "",
        target: str = "",
        saved: Optional[str] = None,
        options: Optional[List[str]] = None,
    ) -> None:
        super().__init__(text)
        self.log = log
        self.place = place
        self.name = name
        self.target = target
        self.saved = saved
        self.options = options or []


class LinkError(Error):
    """Images do not link; ``log`` is the linker's, whole."""

    def __init__(self, text: str, *, log: str = "") -> None:
        super().__init__(text)
        self.log = log


class LoadError(Error):
    """The driver refused an image or a GPU: ``number`` is its own (cuda.h), ``advice`` what to do, where that is known."""

    def __init__(self, text: str, *, number: int = 0, advice: str = "") -> None:
        super().__init__(text)
        self.number = number
        self.advice = advice


class LaunchError(Error):
    """The driver refused a launch."""


class DeadlineError(Error, TimeoutError):
    """It took longer than ``timeout`` allowed."""
