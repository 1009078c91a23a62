"""The values of one process in its host's object store."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import Any

from monarch_client.context.objects.calls import DirectCalls, SocketCalls, StoreCalls
from monarch_client.context.objects.errors import ObjectStoreError
from monarch_client.context.objects.host_store import HostStore
from monarch_client.context.objects.ledger import OWNER
from monarch_client.context.objects.releases import Releases
from monarch_client.context.objects.serialization import (
    Serialized,
    deserialize_object,
    serialize,
)


class StoreClient:
    """A process's way to write values into the store, and to read them without a copy.

    Any thread may use it. Arrays that were read are read-only views of shared memory, which stays
    while they are in use. Tensors are private: a page is copied when it is first written to.
    """

    def __init__(self, calls: StoreCalls) -> None:
        self._calls = calls
        self._releases = Releases(calls)

    @classmethod
    def of_store(cls, store: HostStore) -> StoreClient:
        """Return the client of the process that runs the store."""
        return cls(DirectCalls(store))

    @classmethod
    def connect(cls, address: str) -> StoreClient:
        """Return a client of the store whose server has this address on the same host."""
        return cls(SocketCalls(address))

    def put(self, object_id: bytes, value: object, *, owner: int = OWNER) -> int:
        """Store a value, or one that is serialized already; return its bytes.

        `owner` is the process that gets a reference: by default the one that runs the store. An
        object that exists is left as it is.
        """
        serialized = value if isinstance(value, Serialized) else serialize(value)
        size = serialized.size
        try:
            offset = self._calls.create(object_id, size, owner)
            if offset is not None:
                self._calls.mapping.write(offset, serialized.parts())
                self._calls.seal(object_id)
        except BaseException:
            with contextlib.suppress(ObjectStoreError):
                self._calls.abort(object_id)
            raise
        return size

    def get(self, object_id: bytes, source: str = "") -> Any:
        """Return a value, which the host fetches from `source` first if it does not have it.

        ObjectNotFoundError: it has no `source`. ObjectUnreachableError: that does not send it.
        """
        self._releases.keep_up()
        offset, size = self._calls.pin(object_id, source)
        mapping = self._calls.mapping
        release = partial(self._releases.unpin, object_id, os.getpid())
        whole = mapping.view(offset, size, release)
        # The private memory is of the same pages, so that they have to stay as well.
        return deserialize_object(whole, lambda: mapping.private_view(offset, size, whole))

    def add_reference(self, object_id: bytes) -> None:
        """Note that the process has one more reference to an object."""
        self._releases.change_reference(object_id, 1)

    def drop_reference(self, object_id: bytes) -> None:
        """Note that the process has one reference less. A garbage collector may call it."""
        self._releases.change_reference(object_id, -1)

    def flush(self) -> None:
        """Wait until the store has processed all changes of references and ended pins."""
        self._releases.flush()

    def close(self) -> None:
        """Send what is left, and end the connection. Values that were read stay usable."""
        self._releases.close()
        self._calls.close()
