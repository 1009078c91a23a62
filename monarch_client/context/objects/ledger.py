"""The objects of one host: their states, the processes that use them, and who may be evicted.

Pure: `HostStore` holds the lock, and does the work on memory and disk that these methods return.

    create ──► writing ──seal──► sealed ──(no reference)──► deleted ──(no pin)──► forgotten
                  └──abort, end of the creator──► forgotten

A *reference* keeps an object: one for each `ObjectRef` of a process. A *pin* keeps its memory: one
for each value that a process has read and still has. Both end with their process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from monarch_client.context.objects.errors import ObjectNotFoundError, ObjectStoreError
from monarch_client.context.objects.serialization import aligned

# The holder of references that end with the store: the process that runs it, and its owner.
OWNER = 0


@dataclass(slots=True, eq=False)
class ObjectRecord:
    """One object of the host. `offset` is in the arena, `disk_offset` in the spill file."""

    object_id: bytes
    size: int
    creator: int
    owner: int
    is_copy: bool = False
    is_sealed: bool = False
    is_deleted: bool = False
    # The store itself reads or writes the object's memory: a spill or a restore.
    is_busy: bool = False
    offset: int | None = None
    disk_offset: int | None = None
    pins: dict[int, int] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether the object's memory may be taken."""
        return (
            self.is_sealed
            and not (self.is_deleted or self.is_busy or self.pins)
            and self.offset is not None
        )


class Ledger:
    """The records of all objects. `take_freed` returns those that own memory and disk no longer."""

    def __init__(self) -> None:
        self._records: dict[bytes, ObjectRecord] = {}
        # Also of objects that do not exist yet: an argument may be a reference to a result.
        self._references: dict[bytes, dict[int, int]] = {}
        self._idle: OrderedDict[bytes, ObjectRecord] = OrderedDict()  # least recently used first
        self._idle_copies: OrderedDict[bytes, ObjectRecord] = OrderedDict()
        self._freed: list[ObjectRecord] = []
        self.idle_bytes = 0  # of the memory that may be taken

    def __iter__(self) -> Iterator[ObjectRecord]:
        return iter(self._records.values())

    def find(self, object_id: bytes) -> ObjectRecord | None:
        """Return the record of an object that is not deleted, or None."""
        record = self._records.get(object_id)
        return None if record is None or record.is_deleted else record

    def sealed(self, object_id: bytes) -> ObjectRecord:
        """Return the record of a sealed object. ObjectNotFoundError: there is none."""
        record = self.find(object_id)
        if record is None or not record.is_sealed:
            raise ObjectNotFoundError(object_id)
        return record

    def reference_count(self, object_id: bytes) -> int:
        """Return the number of references of all processes."""
        return sum(self._references.get(object_id, {}).values())

    def create(self, record: ObjectRecord) -> None:
        """Add an object that its creator is going to write."""
        if record.object_id in self._records:
            raise ObjectStoreError(f"Object {record.object_id.hex()} exists already.")
        self._records[record.object_id] = record

    def seal(self, object_id: bytes, creator: int) -> None:
        """Make an object readable. Its owner gets one reference."""
        record = self._written_by(object_id, creator)
        record.is_sealed = True
        if not record.is_copy:
            self._add_references(object_id, record.owner, 1)
        self._settle(record)

    def abort(self, object_id: bytes, creator: int) -> None:
        """Forget an object that its creator could not write."""
        record = self._written_by(object_id, creator)
        record.is_deleted = True
        self._settle(record)

    def _written_by(self, object_id: bytes, creator: int) -> ObjectRecord:
        record = self.find(object_id)
        if record is None or record.is_sealed or record.creator != creator:
            raise ObjectNotFoundError(object_id)
        return record

    def pin(self, record: ObjectRecord, holder: int) -> None:
        """Keep a sealed object's memory where it is."""
        record.pins[holder] = record.pins.get(holder, 0) + 1
        self._settle(record)

    def unpin(self, holder: int, counts: Mapping[bytes, int]) -> None:
        """End pins of a process. Those that it does not have are ignored."""
        for object_id, count in counts.items():
            record = self._records.get(object_id)
            if record is None or holder not in record.pins:
                continue
            record.pins[holder] -= count
            if record.pins[holder] <= 0:
                del record.pins[holder]
            self._settle(record)

    def change_references(self, holder: int, changes: Mapping[bytes, int]) -> None:
        """Add to a process's numbers of references; an object without any is deleted.

        ObjectStoreError: a number would fall below zero; the others are changed.
        """
        below = [
            object_id
            for object_id, change in changes.items()
            if not self._add_references(object_id, holder, change)
        ]
        for object_id in changes:
            if (record := self._records.get(object_id)) is not None:
                self._settle(record)
        if below:
            raise ObjectStoreError(
                f"Process {holder} has dropped more references to object {below[0].hex()} than it"
                " had."
            )

    def _add_references(self, object_id: bytes, holder: int, change: int) -> bool:
        """Change a number of references, at least to 0; return whether it would be below."""
        counts = self._references.setdefault(object_id, {})
        count = counts.get(holder, 0) + change
        if count > 0:
            counts[holder] = count
        else:
            counts.pop(holder, None)
        if not counts:
            del self._references[object_id]
        return count >= 0

    def adopt(self, object_id: bytes) -> None:
        """Make the store's own process the owner of an object."""
        record = self.find(object_id)
        if record is not None and record.is_sealed and record.owner != OWNER:
            self._add_references(object_id, OWNER, 1)
            self._add_references(object_id, record.owner, -1)
            record.owner = OWNER

    def discard(self, object_id: bytes) -> None:
        """Drop the owner's reference."""
        if (record := self.find(object_id)) is not None:
            self.change_references(record.owner, {object_id: -1})

    def end(self, holder: int) -> None:
        """End a process's pins and references, and forget what it has not sealed."""
        for record in list(self._records.values()):
            # Of an ended owner too: its seal may have arrived before its end, and wait to be read.
            if not record.is_sealed and holder in (record.creator, record.owner):
                record.is_deleted = True
            record.pins.pop(holder, None)
            self._settle(record)
        for object_id in [each for each, held in self._references.items() if holder in held]:
            self.change_references(holder, {object_id: -self._references[object_id][holder]})

    def victim(self) -> ObjectRecord | None:
        """Return the object to evict next: the least recently used one, copies first."""
        for idle in (self._idle_copies, self._idle):
            if idle:
                return next(iter(idle.values()))
        return None

    def drop(self, record: ObjectRecord) -> None:
        """Forget a copy of another host's object, or one for which there was no memory."""
        record.is_deleted = True
        self._settle(record)

    def set_busy(self, record: ObjectRecord, *, is_busy: bool) -> None:
        """Note that the store begins or ends to read or write an object's memory."""
        record.is_busy = is_busy
        self._settle(record)

    def moved_to_disk(self, record: ObjectRecord) -> None:
        """Note that an object is on disk only."""
        record.offset = None
        self._settle(record)

    def _settle(self, record: ObjectRecord) -> None:
        """Apply the rules to a record that has changed."""
        object_id = record.object_id
        is_counted = record.is_sealed and not record.is_copy
        if is_counted and object_id not in self._references:
            record.is_deleted = True
        if (
            record.is_deleted
            and not (record.pins or record.is_busy)
            and self._records.pop(object_id, None) is not None
        ):
            self._freed.append(record)
        idle = self._idle_copies if record.is_copy else self._idle
        if record.is_idle and object_id not in idle:
            idle[object_id] = record
            self.idle_bytes += aligned(record.size)
        elif not record.is_idle and idle.pop(object_id, None) is not None:
            self.idle_bytes -= aligned(record.size)

    def take_freed(self) -> list[ObjectRecord]:
        """Return the records whose memory and disk are to be freed, once."""
        freed, self._freed = self._freed, []
        return freed
