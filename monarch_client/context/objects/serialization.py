"""Values as bytes: a pickle, and the large buffers of the value outside of it.

Pickle protocol 5 leaves the memory of arrays out of the pickle, so that it is copied once, into the
object store, and not at all when it is read. cloudpickle adds functions and classes of `__main__`.

One object is one range of bytes, which is copied, spilled and sent as it is:

    count, length of the head    two 32-bit integers
    (offset and flag, length)    two 64-bit integers for each buffer
    head                         the pickle
    buffers                      each at a multiple of 64 bytes
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from monarch_client.context.pickling import PROTOCOL, FunctionPickler

ALIGNMENT = 64
_COUNTS = struct.Struct("<II")
_ENTRY = struct.Struct("<QQ")
# A buffer whose reader may write: the lowest bit of its offset, which is 0 in a multiple of 64.
_WRITABLE = 1


def aligned(size: int) -> int:
    """Round a size up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class BufferEntry:
    """A buffer's range within an object; readers get a private copy on write if `is_writable`."""

    offset: int
    length: int
    is_writable: bool


@dataclass(frozen=True, slots=True)
class Serialized:
    """A value's pickle, and its buffers, which still are the value's own memory."""

    head: bytes | memoryview
    buffers: Sequence[memoryview]
    writable: frozenset[int] = field(default_factory=frozenset)

    def entries(self) -> list[BufferEntry]:
        """Return the ranges of the buffers in the object."""
        offset = aligned(self._head_offset + len(self.head))
        entries = []
        for index, buffer in enumerate(self.buffers):
            entries.append(BufferEntry(offset, buffer.nbytes, index in self.writable))
            offset = aligned(offset + buffer.nbytes)
        return entries

    @property
    def _head_offset(self) -> int:
        return _COUNTS.size + _ENTRY.size * len(self.buffers)

    @property
    def size(self) -> int:
        """The bytes of the object."""
        entries = self.entries()
        if not entries:
            return self._head_offset + len(self.head)
        return entries[-1].offset + entries[-1].length

    def parts(self) -> list[tuple[int, memoryview]]:
        """Return the object's contents as (offset, bytes)."""
        entries = self.entries()
        table = bytearray(_COUNTS.pack(len(entries), len(self.head)))
        for entry in entries:
            table += _ENTRY.pack(entry.offset | entry.is_writable, entry.length)
        table += self.head
        ranges = [
            (entry.offset, buffer)
            for entry, buffer in zip(entries, self.buffers, strict=True)
            if entry.length
        ]
        return [(0, memoryview(table)), *ranges]

    def to_bytes(self) -> bytes:
        """Return the object as one string of bytes."""
        whole = bytearray(self.size)
        for offset, part in self.parts():
            whole[offset : offset + part.nbytes] = part
        return bytes(whole)


def read_layout(whole: memoryview) -> tuple[memoryview, list[BufferEntry]]:
    """Return the head of an object, and the ranges of its buffers."""
    count, head_length = _COUNTS.unpack_from(whole)
    entries = []
    for index in range(count):
        offset, length = _ENTRY.unpack_from(whole, _COUNTS.size + index * _ENTRY.size)
        entries.append(BufferEntry(offset & ~_WRITABLE, length, bool(offset & _WRITABLE)))
    start = _COUNTS.size + count * _ENTRY.size
    return whole[start : start + head_length], entries


class _Buffers:
    """The memory of arrays and tensors that a pickler leaves out of the pickle.

    It does not know the pickler: in a cycle both would keep the pickled value until the garbage
    collector finds them.
    """

    def __init__(self) -> None:
        self.views: list[memoryview] = []
        self.writable: set[int] = set()
        # By identity, and kept: a freed one's identity would be used again.
        self._of_tensors: dict[int, pickle.PickleBuffer] = {}

    def keep(self, buffer: pickle.PickleBuffer) -> None:
        if id(buffer) in self._of_tensors:
            self.writable.add(len(self.views))
        self.views.append(buffer.raw())

    def reduce_tensor(self, tensor: Any) -> Any:
        """Reduce a plain tensor in host memory to its bytes, and any other one as torch does."""
        torch = sys.modules["torch"]
        is_plain = tensor.device.type == "cpu" and tensor.layout == torch.strided
        # A part of a graph, hooks, or lazy conjugation: torch knows how, or refuses.
        if not is_plain or not tensor.is_leaf or tensor._backward_hooks or tensor.is_conj():
            return tensor.__reduce_ex__(5)
        if not tensor.numel() or tensor.is_neg() or tensor.is_quantized:
            return tensor.__reduce_ex__(5)
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        buffer = pickle.PickleBuffer(flat.numpy())
        self._of_tensors[id(buffer)] = buffer
        shape = tuple(tensor.shape)
        return _restore_tensor, (buffer, tensor.dtype, shape, tensor.requires_grad)


def _restore_tensor(buffer: Any, dtype: Any, shape: tuple[int, ...], requires_grad: bool) -> Any:  # noqa: FBT001 - pickled by position
    """Return a tensor in the buffer's memory."""
    import torch  # noqa: PLC0415 - only values with tensors need it

    tensor = torch.frombuffer(buffer, dtype=torch.uint8).view(dtype).reshape(shape)
    return tensor.requires_grad_(requires_grad)


def serialize(value: object) -> Serialized:
    """Pickle a value. Its buffers are not copied: do not change the value before they are."""
    file, buffers = io.BytesIO(), _Buffers()
    pickler = FunctionPickler(file, protocol=PROTOCOL, buffer_callback=buffers.keep)
    if torch := sys.modules.get("torch"):
        own = {torch.Tensor: buffers.reduce_tensor}
        pickler.dispatch_table = ChainMap(own, FunctionPickler.dispatch_table)
    pickler.dump(value)
    return Serialized(file.getbuffer(), buffers.views, frozenset(buffers.writable))


def deserialize(head: bytes | memoryview, buffers: Sequence[Any]) -> Any:
    """Return the value; its arrays are in the memory of the buffers, which must outlive them."""
    return pickle.loads(head, buffers=buffers)  # noqa: S301 - the job's own processes wrote it


def deserialize_object(whole: memoryview, writable: Callable[[], memoryview] | None = None) -> Any:
    """Return the value of an object in memory; its arrays are views of `whole`.

    `writable` returns private memory with the same bytes, for tensors: torch has none that are
    read-only. By default their bytes are copied.
    """
    head, entries = read_layout(whole)
    private = None
    if writable and any(entry.is_writable for entry in entries):
        private = writable()
    buffers: list[Any] = []
    for entry in entries:
        end = entry.offset + entry.length
        if not entry.is_writable:
            buffers.append(whole[entry.offset : end].toreadonly())
        elif private is None:
            buffers.append(bytearray(whole[entry.offset : end]))
        else:
            buffers.append(private[entry.offset : end])
    return deserialize(head, buffers)
