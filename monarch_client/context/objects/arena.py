"""The shared memory of a host's objects: one file in memory, which grows and stays warm.

The file has no name: processes get its descriptor over a socket, and the kernel frees it with the
last process that has it. A memfd is no file of /dev/shm, which has 64 MB in many containers.
New pages of such a file cost up to a hundred times as much as the copy into them. So memory that
was freed is used again first, and a thread prepares a slab of new memory ahead of its use.
"""

from __future__ import annotations

import os
import threading
import weakref

from monarch_client.context.objects.allocation import Allocator
from monarch_client.context.objects.errors import ObjectStoreError
from monarch_client.context.objects.mapping import ArenaMapping

SLAB = 64 * 1024 * 1024


class Arena:
    """The allocated ranges of the shared memory, and the memory itself.

    `allocate` and `free` are for one caller at a time. `ensure` may run beside them.
    """

    def __init__(self, capacity: int, slab: int = SLAB) -> None:
        self.allocator = Allocator(capacity)
        self.capacity = self.allocator.capacity
        self.descriptor = os.memfd_create("mportal-objects", os.MFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self.descriptor)
        # Sparse: only what `ensure` allocates takes memory.
        os.truncate(self.descriptor, self.capacity)
        self.mapping = ArenaMapping(os.dup(self.descriptor), self.capacity)
        self._slab = min(slab, self.capacity)
        self._grown = 0
        self._growing = threading.Lock()
        self._warming: threading.Thread | None = None

    @property
    def grown(self) -> int:
        """The bytes of memory that the file has."""
        return self._grown

    def allocate(self, size: int) -> int | None:
        """Return the offset of a free range, or None. Its memory may not exist: see `ensure`."""
        return self.allocator.allocate(size)

    def free(self, offset: int) -> None:
        """Free a range. Its memory stays, for the next object."""
        self.allocator.free(offset)

    def ensure(self, end: int) -> None:
        """Give the file memory up to `end`. ObjectStoreError: the machine has no more.

        Without it, a write to the file would end the process by SIGBUS.
        """
        if end > self._grown:
            with self._growing:
                self._grow(end)
        self._warm_ahead(end)

    def _grow(self, end: int) -> None:
        end = min(-(-end // self._slab) * self._slab, self.capacity)
        if end <= self._grown:
            return
        try:
            os.posix_fallocate(self.descriptor, self._grown, end - self._grown)
        except OSError as error:
            raise ObjectStoreError(
                f"The machine has no memory to grow the object store to {end} bytes:"
                f" {error.strerror}."
            ) from error
        self._grown = end

    def _warm_ahead(self, end: int) -> None:
        """Start a thread that prepares the next slab, if less than half of one is left."""
        if self._grown - end >= self._slab // 2 or self._grown >= self.capacity:
            return
        if self._warming is None or not self._warming.is_alive():
            self._warming = threading.Thread(
                target=_warm, args=(weakref.ref(self),), name="object-store-warm", daemon=True
            )
            self._warming.start()

    def warm(self) -> None:
        """Add one slab, and touch its pages."""
        with self._growing:
            start = self._grown
            self._grow(start + 1)
        if self._grown > start:
            self.mapping.populate(start, self._grown - start)


def _warm(arena: weakref.ref[Arena]) -> None:
    """Prepare a slab of an arena that still exists; one without memory is left as it is."""
    if (found := arena()) is not None:
        try:
            found.warm()
        except ObjectStoreError:
            return  # The next object that needs the memory reports it.
