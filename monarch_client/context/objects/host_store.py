"""The object store of one host: shared memory, and a spill file for what does not fit.

One process of the host runs it: the driver, or the host's agent. Other processes reach it over a
socket (`server.py`, `socket_calls.py`), and map the same memory. The creator writes an object's
bytes there itself; the store only decides where.

Before an object is refused, others are evicted, the least recently used first: copies of other
hosts' objects are dropped, then sealed objects that no process has read and still holds are
written to disk. They are restored when they are read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from monarch_client.context.objects.arena import Arena
from monarch_client.context.objects.errors import (
    ObjectNotFoundError,
    ObjectStoreError,
    ObjectUnreachableError,
    StoreFullError,
)
from monarch_client.context.objects.ledger import OWNER, Ledger, ObjectRecord
from monarch_client.context.objects.spill_file import SpillFile

# Values that other processes have just dropped are reported within milliseconds.
RELEASE_WAIT_S = 1.0
# A second creator of an object waits as long for the first, which may have been killed just now.
CREATOR_WAIT_S = 5.0
_MOST_FETCHES = 5


@dataclass(frozen=True, slots=True)
class StoreUsage:
    """The bytes and objects of a host's store."""

    limit: int
    used: int
    in_use: int
    spilled: int
    copies: int
    objects: int


class HostStore:
    """The objects of one host. Its methods may be called from any thread.

    `limit`: the bytes of shared memory. `spill_directory`: where objects go that do not fit; None:
    they are refused. `release_wait_s`: how long an object waits for memory that is in use before
    it is refused.
    """

    def __init__(
        self,
        limit: int,
        spill_directory: Path | None = None,
        release_wait_s: float = RELEASE_WAIT_S,
    ) -> None:
        self.arena = Arena(limit)
        self._spill = SpillFile(spill_directory) if spill_directory else None
        self._ledger = Ledger()
        self._release_wait_s = release_wait_s
        # Copies an object from another host into this store; None: there are no others.
        self.fetch: Callable[[bytes, str], None] | None = None
        # Called without a lock before each object: drops references of which nobody has reported.
        self.before_create: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._spilling = 0  # threads that write to the spill file

    @property
    def limit(self) -> int:
        """The bytes of shared memory that objects may take."""
        return self.arena.capacity

    def create(
        self,
        object_id: bytes,
        size: int,
        creator: int,
        *,
        owner: int = OWNER,
        is_copy: bool = False,
    ) -> int | None:
        """Return the offset at which the creator is to write an object, and seal it.

        None: the object exists already, such as the result of a task that is repeated. At the
        seal, `owner` gets a reference to it. A copy has none: it is deleted or evicted.
        StoreFullError: no memory is free, and none can be evicted.
        """
        if self.before_create is not None:
            self.before_create()
        record = ObjectRecord(object_id, size, creator, owner, is_copy, is_busy=True)
        with self._changed:
            if self._exists(object_id):
                return None
            self._ledger.create(record)
        try:
            record.offset = offset = self._allocate(record)
        except ObjectStoreError:
            self._change(lambda: self._ledger.drop(record))
            raise
        finally:
            self._change(lambda: self._ledger.set_busy(record, is_busy=False))
        return offset

    def _exists(self, object_id: bytes) -> bool:
        """Whether an object is sealed. Waits for one that another process writes."""

        def is_settled() -> bool:
            record = self._ledger.find(object_id)
            return record is None or record.is_sealed

        if not self._changed.wait_for(is_settled, CREATOR_WAIT_S):
            raise ObjectStoreError(f"Another process still writes object {object_id.hex()}.")
        return self._ledger.find(object_id) is not None

    def seal(self, object_id: bytes, creator: int) -> None:
        """Make an object readable; it never changes again."""
        self._change(lambda: self._ledger.seal(object_id, creator))

    def abort(self, object_id: bytes, creator: int) -> None:
        """Free an object that its creator could not write."""
        self._change(lambda: self._ledger.abort(object_id, creator))

    def pin(self, object_id: bytes, holder: int, source: str = "") -> tuple[int, int]:
        """Keep an object in memory for a process; return its offset and size.

        An object on disk is restored first, and one of host `source` fetched. ObjectNotFoundError:
        this host does not have it. ObjectUnreachableError: the other host does not send it.
        """
        for _ in range(_MOST_FETCHES if source else 0):
            try:
                return self._pin(object_id, holder)
            except ObjectNotFoundError:
                if self.fetch is None:
                    raise
            # Copies may be evicted before they are pinned, where memory is very short.
            self.fetch(object_id, source)
        try:
            return self._pin(object_id, holder)
        except ObjectNotFoundError as error:
            if not source:
                raise
            raise ObjectUnreachableError(object_id, source, "its copy has no room") from error

    def _pin(self, object_id: bytes, holder: int) -> tuple[int, int]:
        with self._changed:
            while True:
                record = self._ledger.sealed(object_id)
                is_restoring = record.is_busy and record.disk_offset is not None
                if is_restoring:
                    self._changed.wait()
                elif record.offset is not None:
                    self._ledger.pin(record, holder)
                    return record.offset, record.size
                elif self._spill is not None and record.disk_offset is not None:
                    self._restore(record, self._spill, record.disk_offset)

    def _restore(self, record: ObjectRecord, spill: SpillFile, disk_offset: int) -> None:
        """Read an object from disk. The lock is free during the reading."""
        self._ledger.set_busy(record, is_busy=True)
        self._changed.release()
        offset = None
        try:
            offset = self._allocate(record)
            spill.read(disk_offset, self.arena.mapping.writable_view(offset, record.size))
        except (OSError, EOFError) as error:
            raise ObjectStoreError(
                f"Object {record.object_id.hex()} cannot be read from {spill.directory}: {error}."
            ) from error
        else:
            record.offset = offset
        finally:
            self._changed.acquire()
            if offset is not None and record.offset is None:
                self.arena.free(offset)
            self._ledger.set_busy(record, is_busy=False)
            self._free()

    def unpin(self, holder: int, counts: Mapping[bytes, int]) -> None:
        """End pins of a process: values that it has read and no longer has."""
        self._change(lambda: self._ledger.unpin(holder, counts))

    def change_references(self, holder: int, changes: Mapping[bytes, int]) -> None:
        """Add to a process's numbers of references; objects without any are deleted."""
        self._change(lambda: self._ledger.change_references(holder, changes))

    def adopt(self, object_id: bytes) -> None:
        """Move the reference of an object's owner to the process that runs the store."""
        self._change(lambda: self._ledger.adopt(object_id))

    def discard(self, object_id: bytes) -> None:
        """Drop the reference of an object's owner."""
        self._change(lambda: self._ledger.discard(object_id))

    def process_ended(self, holder: int) -> None:
        """Free what a process had: pins, references, and objects that it has not sealed."""
        self._change(lambda: self._ledger.end(holder))

    def forget_copy(self, object_id: bytes) -> None:
        """Free a copy of an object that was deleted on its own host."""
        with self._changed:
            record = self._ledger.find(object_id)
            if record is not None and record.is_copy:
                self._ledger.drop(record)
                self._free()

    def contains(self, object_id: bytes) -> bool:
        """Whether the host has a sealed object, in memory or on disk."""
        with self._changed:
            record = self._ledger.find(object_id)
            return record is not None and record.is_sealed

    def size_of(self, object_id: bytes) -> int:
        """Return the bytes of a sealed object. ObjectNotFoundError: this host does not have it."""
        with self._changed:
            return self._ledger.sealed(object_id).size

    def usage(self) -> StoreUsage:
        """Return the bytes and objects of the store."""
        with self._changed:
            records = list(self._ledger)
            return StoreUsage(
                limit=self.limit,
                used=self.arena.allocator.used,
                in_use=self._in_use(),
                spilled=self._spill.used if self._spill else 0,
                copies=sum(each.size for each in records if each.is_copy),
                objects=len(records),
            )

    def _change(self, change: Callable[[], None]) -> None:
        """Change the ledger, and free what no process has any more."""
        with self._changed:
            try:
                change()
            finally:
                self._free()

    def _free(self) -> None:
        """Free the memory and disk of forgotten objects, and wake those that wait for it."""
        for record in self._ledger.take_freed():
            if record.offset is not None:
                self.arena.free(record.offset)
            if record.disk_offset is not None and self._spill is not None:
                self._spill.remove(record.disk_offset)
        self._changed.notify_all()

    def _allocate(self, record: ObjectRecord) -> int:
        """Return memory for a busy record, after evictions if need be. Called without the lock."""
        deadline = time.monotonic() + self._release_wait_s
        with self._changed:
            while (offset := self.arena.allocate(record.size)) is None:
                self._evict_one(record.size, deadline)
        try:
            self.arena.ensure(offset + record.size)
        except ObjectStoreError:
            with self._changed:
                self.arena.free(offset)
            raise
        return offset

    def _evict_one(self, size: int, deadline: float) -> None:
        """Evict one object for another one of `size`, or wait until memory may have been freed."""
        in_use = self._in_use()
        victim = self._ledger.victim() if in_use + size <= self.limit else None
        if victim is not None and victim.is_copy:
            self._ledger.drop(victim)
            self._free()
        elif victim is not None and self._spill is not None:
            self._spill_object(victim, self._spill, size)
        elif self._spilling and size <= self.limit:
            self._changed.wait()
        elif in_use and size <= self.limit and (left := deadline - time.monotonic()) > 0:
            self._changed.wait(left)
        else:
            raise StoreFullError(size, self.limit, in_use)

    def _in_use(self) -> int:
        """Return the bytes that cannot be evicted: pinned, or being written or moved."""
        return self.arena.allocator.used - self._ledger.idle_bytes

    def _spill_object(self, victim: ObjectRecord, spill: SpillFile, size: int) -> None:
        """Write an object to disk unless it is there, and free its memory unless it is in use."""
        if victim.disk_offset is None and victim.offset is not None:
            contents = self.arena.mapping.view(victim.offset, victim.size)
            self._ledger.set_busy(victim, is_busy=True)
            self._spilling += 1
            self._changed.release()  # writing takes seconds
            disk_offset = None
            try:
                disk_offset = spill.write(contents)
            except OSError as error:
                reason = f"Objects cannot be spilled to {spill.directory}: {error.strerror}."
                raise StoreFullError(size, self.limit, self._in_use(), reason) from error
            finally:
                self._changed.acquire()
                self._spilling -= 1
                victim.disk_offset = disk_offset
                self._ledger.set_busy(victim, is_busy=False)
                self._free()
        if victim.is_idle and victim.offset is not None:
            self.arena.free(victim.offset)
            self._ledger.moved_to_disk(victim)
        self._changed.notify_all()

    def close(self) -> None:
        """Free the disk. Memory is freed when no process maps it any more."""
        if self._spill is not None:
            self._spill.close()
