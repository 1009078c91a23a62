"""Arrays as data: dtype, shape and raw bytes. NumPy and torch are used where they are installed."""

from __future__ import annotations

import ctypes
import importlib
import math
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Sequence

# Numbers, times and fixed-size text: no objects, whose bytes would be pointers.
_NUMPY_DTYPE = re.compile(
    r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[mM]8\[\d*\w+\]|[SU]\d+)"
)
_TORCH_DTYPES = frozenset(
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
    ]
)
# NumPy's names of what torch has, for a client without torch.
_AS_NUMPY = {"bool": "|b1", "complex64": "<c8", "complex128": "<c16"}


@dataclass(frozen=True)
class RawArray:
    """An array whose library is not installed here: its dtype's name, shape and bytes."""

    library: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def describe(value: Any) -> tuple[str, str, tuple[int, ...], memoryview] | None:
    """Return (library, dtype, shape, bytes) of an array, or None if it is none.

    ValueError: an array of objects. `numpy.generic` is the library of NumPy's scalars.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _describe_numpy(value, numpy)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _describe_torch(value, torch)
    return None


def build(
    library: str, dtype: str, shape: Sequence[int], data: memoryview, *, may_import: bool
) -> Any:
    """Return the array. ValueError: a dtype, shape or number of bytes that does not fit.

    Without its library the array is a NumPy array if that is installed, else a `RawArray`.
    """
    sizes = tuple(shape)
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError(f"{shape!r} is not the shape of an array")
    if library in ("numpy", "numpy.generic"):
        return _build_numpy(dtype, sizes, data, is_scalar=library == "numpy.generic")
    if library == "torch" and dtype in _TORCH_DTYPES:
        return _build_torch(dtype, sizes, data, may_import=may_import)
    raise ValueError(f"{library!r} has no arrays of {dtype!r} that may be sent")


def _describe_numpy(value: Any, numpy: Any) -> tuple[str, str, tuple[int, ...], memoryview]:
    dtype = value.dtype.str
    if not _NUMPY_DTYPE.fullmatch(dtype):
        raise ValueError(f"an array of dtype {value.dtype} cannot be sent as bytes")
    shape = tuple(value.shape)
    flat = numpy.ascontiguousarray(value).reshape(-1)
    library = "numpy.generic" if isinstance(value, numpy.generic) else "numpy"
    return library, dtype, shape, memoryview(flat.view("u1") if flat.size else b"")


def _describe_torch(value: Any, torch: Any) -> tuple[str, str, tuple[int, ...], memoryview]:
    dtype = str(value.dtype).partition(".")[2]
    if dtype not in _TORCH_DTYPES or value.layout != torch.strided:
        raise ValueError(f"a tensor of {value.dtype} with {value.layout} cannot be sent as bytes")
    flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    length = flat.numel() * flat.element_size()
    # torch gives no buffer without NumPy: its memory is copied from the address.
    data = ctypes.string_at(flat.data_ptr(), length) if length else b""
    return "torch", dtype, tuple(value.shape), memoryview(data)


def _build_numpy(dtype: str, shape: tuple[int, ...], data: memoryview, *, is_scalar: bool) -> Any:
    if not _NUMPY_DTYPE.fullmatch(dtype):
        raise ValueError(f"NumPy has no arrays of {dtype!r} that may be sent")
    try:
        import numpy  # noqa: PLC0415 - optional
    except ImportError:
        return RawArray("numpy", dtype, shape, bytes(data))
    try:
        kind = numpy.dtype(dtype)
        if not kind.itemsize:
            raise ValueError("NumPy's items of no bytes may not be sent")  # any shape would fit
        _check_length(kind.itemsize, shape, data)
        _check_characters(numpy, dtype, data)
        array = numpy.ndarray(shape, kind, data) if len(data) else numpy.empty(shape, kind)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"NumPy has no arrays of {dtype!r}: {error}") from error
    return array[()] if is_scalar else array


def _build_torch(dtype: str, shape: tuple[int, ...], data: memoryview, *, may_import: bool) -> Any:
    torch = sys.modules.get("torch")
    if torch is None and may_import:
        torch = importlib.import_module("torch")
    if torch is not None:
        kind = getattr(torch, dtype)
        flat = torch.frombuffer(data, dtype=kind) if len(data) else torch.empty(0, dtype=kind)
        _check_length(flat.element_size(), shape, data)
        return flat.reshape(shape)
    known = re.fullmatch(r"(u?int|float)(8|16|32|64)", dtype)
    if known is None and dtype not in _AS_NUMPY:
        return RawArray("torch", dtype, shape, bytes(data))
    name = f"<{known[1][0]}{int(known[2]) // 8}" if known else _AS_NUMPY[dtype]
    return _build_numpy(
        name.replace("<u1", "|u1").replace("<i1", "|i1"), shape, data, is_scalar=False
    )


def _check_characters(numpy: Any, dtype: str, data: memoryview) -> None:
    """Check fixed-size text: NumPy itself fails with a SystemError once a program reads it."""
    if dtype[1] == "U" and len(data):
        largest = int(numpy.frombuffer(data, f"{dtype[0]}u4").max())
        if largest > sys.maxunicode:
            raise ValueError(f"{largest:#x} is no character")


def _check_length(item: int, shape: tuple[int, ...], data: memoryview) -> None:
    expected = item * math.prod(shape)
    if len(data) != expected:
        raise ValueError(f"{len(data)} bytes were sent for an array of {expected}")
