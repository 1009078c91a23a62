"""The arena's memory in one process: views that report their end, and writes.

The whole arena is mapped once, larger than its file's memory: growth needs no second mapping, and
pages stay in the process's page tables. Reading goes through a mapping without the right to write.
`mmap` of the standard library cannot do this: its objects have no views with an end of their own.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import pickle
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from monarch_client.context.objects.errors import ObjectStoreError

MADV_POPULATE_WRITE = 23  # Linux 5.14
# Below this a page fault for each page costs less than a call of madvise.
_POPULATED_FROM = 64 * 1024
# Slabs of the arena are a multiple of it: no chunk reaches beyond allocated memory.
_CHUNK = 1024 * 1024
_PROT_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_NO_MEMORY = frozenset((errno.ENOMEM, errno.EFAULT))
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyBuffer_Release", ctypes.pythonapi))

Release = Callable[[], None]


class _MappedRange:
    """A mapped range of addresses, unmapped when nothing refers to it."""

    def __init__(self, descriptor: int, protection: int, flags: int, offset: int, size: int):
        address = _libc.mmap(None, size, protection, flags, descriptor, offset)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise ObjectStoreError(
                f"{size} bytes of the object store cannot be mapped: {os.strerror(number)}."
            )
        self.address = int(address)
        self.base: memoryview | None = None
        weakref.finalize(self, _libc.munmap, self.address, size).atexit = False


class ArenaMapping:
    """The arena as this process sees it, mapped for as long as a view of it is left."""

    def __init__(self, descriptor: int, capacity: int) -> None:
        self.capacity = capacity
        self._descriptor = descriptor
        self._readable = _MappedRange(descriptor, mmap.PROT_READ, mmap.MAP_SHARED, 0, capacity)
        self._writable = _MappedRange(descriptor, _PROT_READ_WRITE, mmap.MAP_SHARED, 0, capacity)
        # The chunks whose pages this process can write to without a fault.
        self._populated: set[int] = set()
        weakref.finalize(self, os.close, descriptor).atexit = False

    def view(self, offset: int, size: int, release: Release | None = None) -> memoryview:
        """Return read-only memory; call `release` when neither it nor a view of it is left.

        `release` runs wherever the garbage collector does: it takes no lock.
        """
        address = self._readable.address + offset
        return _exported(self._readable, address, size, release).toreadonly()

    def private_view(self, offset: int, size: int, base: memoryview) -> memoryview:
        """Return the bytes of view `base` as memory that copies a page when it is written to.

        It keeps `base`: pages that were not written to are those of the arena.
        """
        start = offset // mmap.PAGESIZE * mmap.PAGESIZE
        length = offset + size - start
        own = _MappedRange(self._descriptor, _PROT_READ_WRITE, mmap.MAP_PRIVATE, start, length)
        own.base = base
        return _exported(own, own.address + offset - start, size, None)

    def write(self, offset: int, parts: Sequence[tuple[int, memoryview]]) -> None:
        """Copy each part to its offset behind `offset`. Other threads run while it copies."""
        for part_offset, part in parts:
            start = offset + part_offset
            if part.nbytes >= _POPULATED_FROM:
                self.populate(start, part.nbytes)
            with _Contents(part) as source:
                ctypes.memmove(self._writable.address + start, source, part.nbytes)

    def writable_view(self, offset: int, size: int) -> memoryview:
        """Return memory of the arena that can be written to, such as for `readinto`."""
        return _exported(self._writable, self._writable.address + offset, size, None)

    def populate(self, offset: int, size: int) -> None:
        """Make the pages of a range writable at once, instead of by a fault for each.

        ObjectStoreError: the machine has no memory for them; without this call the first write
        would end the process. Kernels older than Linux 5.14 cannot, and take faults.
        """
        chunks = range(offset // _CHUNK, -(-(offset + size) // _CHUNK))
        missing = [chunk for chunk in chunks if chunk not in self._populated]
        if not missing:
            return
        start = missing[0] * _CHUNK
        length = min((missing[-1] + 1) * _CHUNK, self.capacity) - start
        address = self._writable.address + start
        if _libc.madvise(address, length, MADV_POPULATE_WRITE):
            number = ctypes.get_errno()
            if number in _NO_MEMORY:
                raise ObjectStoreError(
                    f"The machine has no memory for {size} bytes of the object store:"
                    f" {os.strerror(number)}."
                )
        self._populated.update(missing)


def _exported(mapped: _MappedRange, address: int, size: int, release: Release | None) -> memoryview:
    """Return memory as a view whose last derived view ends `release` and the mapping's use."""
    exporter = _exporter_type(max(size - 1, 1).bit_length()).from_address(address)
    exporter.mapped = mapped
    exporter.release = release
    return pickle.PickleBuffer(exporter).raw()[:size]


@cache
def _exporter_type(bits: int) -> Any:
    """Return a type of 2 ** bits bytes: ctypes keeps each type forever, so there are few."""
    return type("Exporter", (_Exporter, ctypes.c_ubyte * (1 << bits)), {})


class _Exporter:
    """The object behind a view, which ends with the last view of it."""

    mapped: _MappedRange
    release: Release | None

    def __del__(self) -> None:
        if self.release is not None:
            self.release()


class _Buffer(ctypes.Structure):
    """`Py_buffer`, for the address of memory that may be read-only."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("rest", ctypes.c_byte * 128),
    )


class _Contents:
    """The address of a buffer's memory within a `with` block."""

    def __init__(self, source: memoryview) -> None:
        self._source = source
        self._buffer = _Buffer()

    def __enter__(self) -> int:
        _get_buffer(self._source, ctypes.addressof(self._buffer), 0)
        return int(self._buffer.buf or 0)

    def __exit__(self, *_: object) -> None:
        _release_buffer(ctypes.addressof(self._buffer))
