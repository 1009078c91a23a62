"""The errors of the object store.

ObjectStoreError        object_store_failed
├── StoreFullError      store_full        neither memory nor disk has room for an object
├── ObjectNotFoundError object_not_found  this host has no such object
└── ObjectUnreachableError object_unreachable  another host has it, and does not send it
"""

from __future__ import annotations

from monarch_client.errors import ClientError


class ObjectStoreError(ClientError):
    """The object store cannot do this."""

    code = "object_store_failed"


class StoreFullError(ObjectStoreError):
    """The store has no room for an object, and nothing that it may spill."""

    code = "store_full"

    def __init__(self, requested: int, limit: int, in_use: int, reason: str = "") -> None:
        super().__init__(
            f"The object store has no room for {_size(requested)}: its limit is {_size(limit)}, and"
            f" {_size(in_use)} are in use and cannot be spilled. "
            + (reason or "Delete arrays that were read from it, or raise the limit.")
        )
        self.requested = requested
        self.limit = limit
        self.in_use = in_use
        self.reason = reason

    def __reduce__(self) -> tuple[type[StoreFullError], tuple[int, int, int, str]]:
        return type(self), (self.requested, self.limit, self.in_use, self.reason)


class ObjectNotFoundError(ObjectStoreError):
    """The host does not have the object: it was deleted, or never sealed here."""

    code = "object_not_found"

    def __init__(self, object_id: bytes) -> None:
        super().__init__(f"Object {object_id.hex()} is not in this host's object store.")
        self.object_id = object_id

    def __reduce__(self) -> tuple[type[ObjectNotFoundError], tuple[bytes]]:
        return type(self), (self.object_id,)


class ObjectUnreachableError(ObjectStoreError):
    """The host that has the object does not send it."""

    code = "object_unreachable"

    def __init__(self, object_id: bytes, source: str, reason: str) -> None:
        super().__init__(f"Object {object_id.hex()} cannot be fetched from {source}: {reason}.")
        self.object_id = object_id
        self.source = source
        self.reason = reason

    def __reduce__(self) -> tuple[type[ObjectUnreachableError], tuple[bytes, str, str]]:
        return type(self), (self.object_id, self.source, self.reason)


def _size(count: int) -> str:
    """Format a number of bytes: "10.5 MB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} bytes"
