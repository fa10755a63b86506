"""Types of the part that is written in Rust."""

from os import PathLike
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from typing_extensions import Self

__version__: str

_Size = Union[int, Tuple[int, ...], List[int]]
_Path = Union[str, "PathLike[str]"]

class Image:
    """A compiled image: a cubin, PTX or LTO-IR."""

    @property
    def name(self) -> str:
        """What it was compiled as."""
    @property
    def image(self) -> bytes:
        """The bytes."""
    @property
    def target(self) -> str:
        """``sm_90``, ``compute_90`` or ``lto_90``."""
    @property
    def log(self) -> str:
        """What the compiler said: warnings."""
    @property
    def lowered(self) -> Dict[str, str]:
        """Each kernel as C++ calls it, and its name in the image."""
    @property
    def key(self) -> Optional[str]:
        """The cache's key; None where nothing could be kept."""
    @property
    def found(self) -> str:
        """``made``, or where it was found: ``memory``, ``disk``, ``shared``, ``given``."""
    def lowered_name(self, expression: str) -> str:
        """The name in the image of what C++ calls ``expression``."""
    def function(self, name: Optional[str] = None, *, device: Any = None) -> Function:
        """Loads it onto a GPU (the current one, if none is named) and gives a kernel of it."""
    def __len__(self) -> int: ...

class Configured:
    """A kernel with its grid and block: ``f[grid, block]``."""

    def __call__(self, *args: Any, shared: int = 0, stream: Any = None) -> None:
        """Starts the kernel and does not wait for it."""

class Function:
    """A kernel on a GPU, ready to launch."""

    @property
    def name(self) -> str:
        """Its name in the image."""
    @property
    def device(self) -> int:
        """The number of its GPU."""
    def __getitem__(self, key: Tuple[_Size, _Size]) -> Configured: ...
    def launch(
        self,
        grid: _Size,
        block: _Size,
        args: Optional[Sequence[Any]] = None,
        *,
        shared: int = 0,
        stream: Any = None,
    ) -> None:
        """Starts the kernel and does not wait for it."""

class Event:
    """A request that a cache has answered."""

    @property
    def name(self) -> str:
        """The name of the kernel, the link or the PTX text."""
    @property
    def key(self) -> Optional[str]:
        """The cache's key; None where it is not known."""
    @property
    def outcome(self) -> str:
        """``made``, where it was found (``memory``, ``disk``, ``shared``), or ``failed``."""
    @property
    def error(self) -> Optional[str]:
        """What it failed with."""
    @property
    def started(self) -> float:
        """When it began, as ``time.time()`` tells it."""
    @property
    def seconds(self) -> float:
        """How long it took, waiting for other threads and processes included."""

class Why:
    """Whether a kernel is stored, and in what it differs from others of its name if not."""

    @property
    def status(self) -> str:
        """``stored``, ``not_stored``, ``never_seen``, ``removed`` or ``differs``."""
    @property
    def reason(self) -> Optional[str]:
        """Why it is never stored."""
    @property
    def changes(self) -> List[Tuple[str, Optional[str], Optional[str], Optional[int]]]:
        """How it differs from the most similar one that was compiled lately: part, old value, new value, and the first line
        that differs."""

class KernelCache:
    def __new__(
        cls,
        folders: Optional[Sequence[_Path]] = None,
        *,
        max_size: Optional[int] = None,
        memory: Optional[int] = None,
        remote: Optional[str] = None,
        nvrtc: Optional[_Path] = None,
        nvjitlink: Optional[_Path] = None,
        options: Sequence[str] = ...,
        include: Sequence[_Path] = ...,
        headers: Optional[Dict[str, str]] = None,
        preamble: Optional[Dict[str, str]] = None,
        packs: Optional[Sequence[_Path]] = None,
    ) -> Self: ...
    def compile(
        self,
        source: str,
        name: str,
        arch: Optional[str] = None,
        *,
        names: Sequence[str] = ...,
        parameters: str = "",
        options: Sequence[str] = ...,
        include: Sequence[_Path] = ...,
        headers: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
        file: Optional[str] = None,
    ) -> Image:
        """Compiles the kernel ``name`` of ``source``, or finds what it compiles to. No GPU is needed if ``arch`` is given:
        ``sm_90`` for machine code, ``compute_90`` for PTX, ``lto_90`` for LTO-IR. ``names`` are further kernels of the
        text; ``parameters`` is text that stands before it. ``timeout`` is in seconds.
        ``file`` is the file that the source is from: errors and debug information name it, and it decides nothing
        else."""
    def get_function(
        self,
        parameters: str,
        name: str,
        source: str,
        device: Any = None,
        *,
        timeout: Optional[float] = None,
        file: Optional[str] = None,
    ) -> Function:
        """The kernel ``name`` of ``source``, with ``parameters`` as text before it, ready to launch on ``device``: compiled
        and loaded when it is first asked for, a look into memory afterwards. Errors name ``file``, as those of ``compile``."""
    def link(
        self,
        pieces: Sequence[Union[Image, Tuple[str, bytes]]],
        arch: str,
        *,
        name: str = "linked",
        options: Sequence[str] = ...,
    ) -> Image:
        """Links images to one cubin for ``arch``. A piece is an Image, or a kind (``cubin``, ``ptx``, ``ltoir``, ``fatbin``,
        ``object``, ``library``) and bytes."""
    def load_ptx(self, ptx: Union[str, bytes], arch: Optional[str] = None, *, name: str = "ptx") -> Image:
        """PTX to machine code, as the driver's JIT would, but kept for every process and machine."""
    def best_arch(self, capability: Optional[int] = None) -> str:
        """The best target for a GPU of compute capability ``capability`` (90 for 9.0), or for the current one."""
    @property
    def counts(self) -> Dict[str, int]:
        """How often images were found in ``memory``, on ``disk``, in a ``shared`` cache, and ``made``."""
    on_event: Optional[Callable[[Event], Any]]
    """Is called with an Event after each request, by the thread that asked, also those of ``compile_many``. Functions that
    are already loaded are not requested again. What it raises goes to ``sys.unraisablehook``."""
    @property
    def remarks(self) -> List[str]:
        """What went wrong so far without being an error."""
    @property
    def folders(self) -> List[str]:
        """The folders, nearest first."""
    @property
    def nvrtc_version(self) -> str: ...
    @property
    def nvrtc_path(self) -> str: ...
    def clear(self) -> None:
        """Removes everything from memory and from the folders that may be written to."""
    def stored(self) -> int:
        """How many images are stored in the nearest folder that may be written to."""
    def flush(self, timeout: float = 300.0) -> bool:
        """Waits until nothing waits to be uploaded to a shared cache; True if that is so."""
    def unload(self) -> None:
        """Forgets every loaded kernel that nobody holds."""
    def _remark(self, remark: str) -> None: ...
    def _settle(self, timeout: float) -> bool: ...

def known_functions() -> List[Tuple[str, List[Tuple[str, Optional[str]]]]]:
    """Every function and name, with its arguments and the numbers taken where they are not given."""

def function(
    cache: KernelCache, name: str, values: Tuple[Any, ...], out: Any, add: bool, stream: Any, dtype: Optional[str] = None
) -> Any:
    """A function of values, in order, computed into ``out`` or a new array."""

def fused(
    cache: KernelCache, text: str, values: Dict[str, Any], out: Any, add: bool, stream: Any, exact: bool = False
) -> Any:
    """An expression over named values."""

def reduce(
    cache: KernelCache, name: str, x: Any, axes: Optional[List[int]], keepdims: bool, out: Any, add: bool, stream: Any
) -> Any:
    """A reduction over axes of ``x``, or all of them."""

def compile_many(
    cache: KernelCache,
    kernels: List[Dict[str, Any]],
    threads: int,
    progress: Optional[Callable[..., Any]],
    timeout: Optional[float],
    worker: Optional[List[str]],
) -> List[Any]:
    """Many kernels: for each an Image or an exception. ``worker`` is the command of processes that compile too."""

def serve_compilations() -> None:
    """Compiles for the process that started this one, until that ends."""

def get_product(
    cache: KernelCache,
    name: str,
    parts: List[Tuple[str, bytes]],
    files: List[str],
    make: Callable[[], Tuple[bytes, Optional[Dict[str, str]], str]],
    *,
    source: Optional[str] = None,
    options: Sequence[str] = ...,
    folders: Sequence[str] = ...,
    timeout: Optional[float] = None,
) -> Image:
    """What another compiler made, or what ``make()`` makes of it now."""

def find_product(cache: KernelCache, name: str, parts: List[Tuple[str, bytes]], files: List[str]) -> Optional[Image]:
    """What is kept of it."""

def keep_product(cache: KernelCache, name: str, parts: List[Tuple[str, bytes]], files: List[str], bytes: bytes) -> None:
    """Keeps what another compiler made."""

def forget_product(cache: KernelCache, name: str, parts: List[Tuple[str, bytes]], files: List[str]) -> bool:
    """Removes what is kept of it."""
