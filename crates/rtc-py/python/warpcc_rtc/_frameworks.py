"""What is known of the frameworks whose arrays come in: their current stream, and how to make an array of theirs.

None of them is imported here but by its own arrays.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional, Tuple

from ._errors import ArgumentError


_kinds: Dict[type, str] = {}


def _kind_of(kind: type) -> str:
    """The framework of an array's type: ``torch``, ``cupy``, or nothing."""
    known = _kinds.get(kind)
    if known is None:
        packages = (base.__module__.partition(".")[0] for base in kind.__mro__)
        known = next((package for package in packages if package in ("torch", "cupy")), "")
        _kinds[kind] = known
    return known


def current_stream(value: Any) -> Optional[int]:
    """The address of the current stream of an array's framework, on that array's GPU; nothing where neither is known."""
    kind = _kind_of(type(value))
    if kind == "torch" and value.is_cuda:
        import torch

        return int(torch.cuda.current_stream(value.device).cuda_stream)
    if kind == "cupy" and hasattr(value, "__cuda_array_interface__"):
        import cupy

        return int(cupy.cuda.get_current_stream(value.device.id).ptr)
    return None


#: What a class brings that has ways of its own to be exported, which the C functions of its base do not know of.
_OWN_WAYS = ("__dlpack__", "__dlpack_device__", "__torch_function__", "__torch_dispatch__")


def exchange_of(kind: type) -> Any:
    """DLPack's C exchange table for arrays of this type, as a capsule; nothing where there is none, or where a class
    between this and the one that has it may mean something else."""
    for base in kind.__mro__:
        table = base.__dict__.get("__dlpack_c_exchange_api__")
        if table is not None:
            return table
        # A Parameter of PyTorch's is no more than a tensor, and says so by one of these.
        is_parameter = (base.__module__, base.__qualname__) == ("torch.nn.parameter", "Parameter")
        if any(name in base.__dict__ for name in _OWN_WAYS) and not is_parameter:
            return None
    return None


def address_of(stream: Any) -> int:
    """The address of a stream of anybody's."""
    if isinstance(stream, int):
        address = stream
    else:
        protocol = getattr(stream, "__cuda_stream__", None)
        if protocol is not None:
            pair = protocol() if callable(protocol) else protocol
            address = int(pair[1])
        else:
            for name in ("cuda_stream", "ptr", "handle"):
                found = getattr(stream, name, None)
                if found is not None:
                    address = int(found)
                    break
            else:
                raise ArgumentError(
                    f"stream: a {type(stream).__name__} is not a stream: one of PyTorch's or CuPy's, an object with "
                    "__cuda_stream__, or the stream's address was expected"
                )
    if not 0 <= address < 1 << 64:
        raise ArgumentError(f"stream: {address} is not an address")
    return address


_CUPY_NAMES = {"bool": "bool_"}
_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}


def empty_like_of(kind: type) -> Any:
    """What makes an array like one of this type, faster than ``empty``; nothing where a class may have another idea of it."""
    torch = sys.modules.get("torch")
    return torch.empty_like if torch is not None and kind is getattr(torch, "Tensor", None) else None


def empty(like: Any, shape: Tuple[int, ...], dtype: str, device: Optional[int]) -> Any:
    """An array of the framework of ``like``, its elements not set."""
    kind = _kind_of(type(like))
    if kind == "torch":
        import torch

        found = getattr(torch, _TORCH_NAMES.get(dtype, dtype), None)
        if found is None:
            raise ArgumentError(f"out: this PyTorch has no type {dtype} for the result; give out=")
        return torch.empty(shape, dtype=found, device=like.device)
    if kind == "cupy":
        import cupy

        found = getattr(cupy, _CUPY_NAMES.get(dtype, dtype), None)
        if found is None:
            raise ArgumentError(f"out: CuPy has no type {dtype} for the result; give out=")
        with like.device:
            return cupy.empty(shape, dtype=found)
    raise ArgumentError(
        f"out: the result of type {dtype} and shape {shape} needs an array: give out=, since a {type(like).__name__} is "
        "neither PyTorch's nor CuPy's"
    )
