"""Every ready-made function under its name, called like a ufunc of NumPy's.

>>> from warpcc_rtc import ops
>>> ops.maximum(x, y)
>>> ops.elu(x, alpha=0.5, out=y)
>>> ops.round(x, dtype="int32")

Names are those of docs/kernels.md: the functions', and NumPy's, the array API's and PyTorch's. The names that mean something
else in Python (``abs``, ``max``, ``round``) are attributes here and are not imported by ``*``.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import ArgumentError, KernelCache, default_cache
from ._native import function as _function, fused as _fused, known_functions as _known_functions

__all__: List[str] = []


class Op:
    """A function: ``op(x, …, out=None, *, where=None, dtype=None, add=False, stream=None, cache=None)``.

    Arguments may be given by their names, and numbers that are not given are those of docs/kernels.md. ``out`` is written;
    without it the result is a new array of the first array's framework, of type ``dtype`` if that is given: the function
    computes in its own type, and the result is converted once. With ``where``, an array of bool, only the elements of ``out``
    where it is true are written; that needs ``out``, of the type that the function gives.
    """

    def __init__(self, name: str, arguments: List[Tuple[str, Optional[str]]]) -> None:
        self.__name__ = name
        self._arguments = arguments
        shown = ", ".join(each if number is None else f"{each}={number}" for each, number in arguments)
        self.__doc__ = f"{name}({shown}, out=None, *, where=None, dtype=None, add=False, stream=None, cache=None)"

    def _values(self, given: Tuple[Any, ...], named: Dict[str, Any]) -> List[Any]:
        names = [name for name, _ in self._arguments]
        values = dict(zip(names, given))
        for name, value in named.items():
            if name not in names or name in values:
                raise TypeError(f"{self.__doc__}: {name} is {'given twice' if name in values else 'no argument'}")
            values[name] = value
        missing = [name for name, number in self._arguments if name not in values and number is None]
        if missing or len(given) > len(names):
            raise TypeError(f"{self.__doc__}: {len(given)} given in order; missing: {', '.join(missing) or 'none'}")
        # Behind the last one that is given the usual numbers follow by themselves.
        last = max(names.index(name) for name in values)
        return [values[name] if name in values else _number(number) for name, number in self._arguments[: last + 1]]

    def __call__(
        self,
        *given: Any,
        out: Any = None,
        where: Any = None,
        dtype: Any = None,
        add: bool = False,
        stream: Any = None,
        cache: Optional[KernelCache] = None,
        **named: Any,
    ) -> Any:
        if len(given) == len(self._arguments) + 1 and out is None:
            # As NumPy takes it.
            *given, out = given  # type: ignore[assignment]
        values = self._values(tuple(given), named)
        cache = default_cache() if cache is None else cache
        if dtype is not None and out is not None:
            raise ArgumentError("dtype: out has a type already: give one of both")
        if where is None:
            return _function(cache, self.__name__, tuple(values), out, add, stream, _type(dtype))
        if out is None or add:
            raise ArgumentError("where: it needs out, whose other elements stay as they are, and not add")
        names = ["x", "y", "z"][: len(values)]
        text = f"where(w, {self.__name__}({', '.join(names)}), o)"
        return _fused(cache, text, {"w": where, **dict(zip(names, values)), "o": out}, out, False, stream, True)

    def __repr__(self) -> str:
        return f"<warpcc_rtc.ops.{self.__doc__}>"


def _number(text: Optional[str]) -> Any:
    return float(text) if text is not None and "." in text else int(text or 0)


def _type(dtype: Any) -> Optional[str]:
    """The name of a type of NumPy's, PyTorch's or CuPy's."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return {"bool_": "bool", "float": "float64", "int": "int64"}.get(name, name.rpartition(".")[2])


_ops: Dict[str, Op] = {name: Op(name, arguments) for name, arguments in _known_functions()}


def __getattr__(name: str) -> Op:
    try:
        return _ops[name]
    except KeyError:
        raise AttributeError(f"warpcc_rtc.ops has no function {name}: docs/kernels.md lists all") from None


def __dir__() -> List[str]:
    return sorted(_ops)
